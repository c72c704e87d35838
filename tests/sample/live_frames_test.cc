// Stacks of real code, followed by frame pointers: the frames are the callers.
#include "src/sys/own_memory.h"
#include "tests/sample/live_support.h"
#include "tests/support/measurement.h"
#include "tests/support/skip.h"

namespace perfkit {
namespace {

using testing::FrameWalker;
using testing::LiveOptions;

// Asking for its own frame's address makes a function have one, whatever the compiler was told.
[[gnu::noinline]] uint64_t Descend(int levels, uint64_t until_ns) {
  void* volatile frame = __builtin_frame_address(0);
  uint64_t x = reinterpret_cast<uint64_t>(frame);
  if (levels > 0) {
    x += Descend(levels - 1, until_ns);
  } else {
    while (testing::NowNs(CLOCK_THREAD_CPUTIME_ID) < until_ns) {
      for (int i = 0; i < 100'000; ++i) asm volatile("" : "+r"(x));
    }
  }
  asm volatile("" : "+r"(x));  // no tail call
  return x;
}

void DescendFor(int levels, uint64_t cpu_ns) { Descend(levels, testing::NowNs(CLOCK_THREAD_CPUTIME_ID) + cpu_ns); }

// Of the stacks of `Descend(kLevels)`: whole ones go back into it, to the same place, as often as there are levels.
constexpr int kLevels = 40;

struct Found {
  uint64_t stacks = 0, whole = 0;
  void Take(const LiveStack& stack) {
    int in = 0;
    StackFrame frames[128];
    const size_t count = stack.CopyTo(frames);
    for (size_t i = 0; i < count; ++i) {
      CHECK(frames[i].is_return_address == (i > 0));
      CHECK(frames[i].is_guess == (i > 0));
      in += frames[i].pc == frames[1].pc;
    }
    CHECK(stack.guesses + 1 == count);
    ++stacks;
    whole += in == kLevels;
  }
};

TEST_CASE("each thread's stacks are its own, to the last frame", "[live][law]") {
  if (testing::kSanitized) SKIP_TEST("a sanitizer's code has no frame pointers where these have");
  auto sampler = Sampler::Open(LiveOptions(1000, FrameWalker::Make), Target::AllThreads());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([] { DescendFor(kLevels, 60'000'000); });
  for (std::thread& thread : threads) thread.join();
  REQUIRE(sampler->Stop().ok());
  const auto low = reinterpret_cast<uint64_t>(&Descend);
  std::map<uint32_t, Found> found;
  sampler->Drain([&](const SamplerRecord& record) {
    Dispatch(record, sampler->layout(), [&](const LiveStack& stack) {
      if (stack.pcs[0] - low < 1024) found[stack.tid].Take(stack);
    });
  });
  CHECK(found.size() == 4);
  uint64_t whole = 0, all = 0;
  for (const auto& [tid, of] : found) whole += of.whole, all += of.stacks;
  INFO(whole << " of " << all);
  CHECK(all > 40);
  CHECK(100 * whole >= 99 * all);  // the others were on their way down or up
}

// As docs/sampling.md has it.
TEST_CASE("samples and their stacks come to one visitor", "[live][law]") {
  auto sampler = Sampler::Open(LiveOptions(1000, FrameWalker::Make));
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  DescendFor(kLevels, 30'000'000);
  REQUIRE(sampler->Stop().ok());
  uint64_t samples = 0, most = 0;
  std::map<uint64_t, uint64_t> calls;
  sampler->Drain([&](const SamplerRecord& record) {
    Dispatch(record, sampler->layout(),
             Overloaded{[&](const Sample&) { ++samples; },
                        [&](const LiveStack& stack) {
                          for (size_t i = 0; i < stack.size(); ++i) ++calls[stack[i].code()];
                        }});
  });
  CHECK(samples > 10);
  const uint64_t stacks = sampler->stats().events[0].stacks.delivered;
  CHECK(stacks > 0);
  for (const auto& [pc, times] : calls) most = std::max(most, times);
  // Where Descend goes back to itself; a sanitizer's code has no frame pointers to find it by.
  CHECK(most >= (testing::kSanitized ? 1 : kLevels / 2 * stacks));
}

TEST_CASE("no stack has more frames than were asked for", "[live][law]") {
  SamplerOptions options = LiveOptions(1000, FrameWalker::Make);
  options.stack.depth = 7;
  auto sampler = Sampler::Open(options);
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  DescendFor(kLevels, 50'000'000);
  REQUIRE(sampler->Stop().ok());
  uint64_t stacks = 0, full = 0;
  sampler->Drain([&](const SamplerRecord& record) {
    Dispatch(record, sampler->layout(), [&](const LiveStack& stack) {
      ++stacks;
      CHECK(stack.size() <= 7);
      full += stack.size() == 7 && stack.end == StackEnd::kLimit;
    });
  });
  CHECK(stacks > 20);
  CHECK(full > stacks / 2);
}

// Says what it was asked for.
class BothEndsWalker : public testing::FlatWalker {
 public:
  PERFKIT_IN_HANDLER UnwoundStack WalkBothEnds(const ucontext_t& context, std::span<StackFrame> frames, uint32_t outer,
                                               uint32_t tid) noexcept override {
    UnwoundStack stack = Walk(context, frames);
    stack.omitted = 1000 * outer + (tid == sys::ThisTid() ? 7 : 0);
    stack.outer = 1;
    return stack;
  }

  static std::unique_ptr<unwind::LiveWalker> Make() { return std::make_unique<BothEndsWalker>(); }
};

TEST_CASE("a stack says how many calls of its middle were left out", "[live][law]") {
  struct Case {
    uint16_t depth, outer, expected;
  };
  for (const Case& one : {Case{0, 0, 256}, Case{100, 0, 0}, Case{100, 30, 30}}) {
    SamplerOptions options = LiveOptions(1000, BothEndsWalker::Make);
    options.stack.depth = one.depth;
    options.stack.outer = one.outer;
    auto sampler = Sampler::Open(options);
    REQUIRE(sampler.ok());
    REQUIRE(sampler->Start().ok());
    DescendFor(1, 20'000'000);
    REQUIRE(sampler->Stop().ok());
    uint64_t stacks = 0;
    sampler->Drain([&](const SamplerRecord& record) {
      Dispatch(record, sampler->layout(), [&](const LiveStack& stack) {
        ++stacks;
        CHECK(stack.omitted == 1000u * one.expected + 7);
        CHECK(stack.outer == 1);
      });
    });
    CHECK(stacks > 0);
  }
}

// Returns false if more records than a few were late: the kernel's own are, where its CPUs are taken away.
bool IsMergedInOrder() {
  testing::Spinners spinners(4);
  auto sampler = Sampler::Open(LiveOptions(testing::Bearable(5000), FrameWalker::Make), Target::AllThreads());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  testing::LiveTally tally;
  const uint64_t until = testing::NowNs() + 400'000'000;
  while (testing::NowNs() < until) testing::DrainInto(*sampler, tally);
  REQUIRE(sampler->Stop().ok());
  spinners.Stop();
  testing::DrainRest(*sampler, tally);
  const EventAccounting accounting = testing::CheckStackAccounting(*sampler);
  INFO("stacks " << tally.stacks << ", paired " << tally.paired << ", orphans " << tally.orphans << ", late "
                 << sampler->stats().late);
  CHECK(tally.early == 0);
  CHECK(tally.disorder == sampler->stats().late);
  CHECK(tally.orphans <= accounting.lost + accounting.stacks.stale + tally.disorder);
  return tally.disorder <= 2 + tally.samples / 500;
}

// With a time in each second that is its own: what was handed out comes in order, also what a slow walk has held back.
TEST_CASE("stacks are merged into the samples of all threads in order of time", "[live][measurement]") {
  if (testing::kSanitized) SKIP_TEST("a sanitizer makes walks too slow for the time to the next sample");
  CHECK(testing::HoldsOnceInThree(IsMergedInOrder));
}

}  // namespace
}  // namespace perfkit
