// Which sample a live stack belongs to, by sequences that are written by hand.
#include "src/session/stack_matcher.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace perfkit::session {
namespace {

constexpr uint32_t kThread = 7;
#if defined(__x86_64__)
constexpr uint64_t kCallBytes = 2;
#else
constexpr uint64_t kCallBytes = 4;
#endif

PendingSample User(uint64_t id, uint64_t pc, uint16_t event = 0) {
  return {.sample = {.time_ns = id, .event = event}, .user_pc = pc, .kernel_pc = 0};
}
PendingSample Kernel(uint64_t id, uint64_t returns_to) {
  return {.sample = {.time_ns = id}, .user_pc = returns_to, .kernel_pc = 0xffff'8000'0000'0000};
}

// Writes down what was emitted: "1+ 2-": sample 1 with a stack, 2 without.
struct Matched {
  StackMatcher matcher;
  std::string emitted;

  void Note(const PendingSample& sample, bool has_stack) {
    emitted += std::to_string(sample.sample.time_ns) + (has_stack ? "+ " : "- ");
  }
  void Add(const PendingSample& sample, uint32_t thread = kThread) {
    matcher.AddSample(thread, sample.sample.event, sample,
                      [&](const PendingSample& old, bool has_stack) { Note(old, has_stack); });
  }
  bool Stack(uint64_t first_pc, uint32_t event = 0, uint32_t thread = kThread) {
    return matcher.AddStack(thread, event, first_pc,
                            [&](const PendingSample& old, bool has_stack) { Note(old, has_stack); });
  }
  std::string Waiting() const {
    std::string waiting;
    matcher.ForEach([&](const PendingSample& sample) { waiting += std::to_string(sample.sample.time_ns) + " "; });
    return waiting;
  }
};

TEST_CASE("a sample in user code has the stack that begins with its pc", "[stack_matcher]") {
  Matched matched;
  matched.Add(User(1, 0x100));
  CHECK(matched.Stack(0x100));
  CHECK(matched.emitted == "1+ ");
  CHECK_FALSE(matched.Stack(0x100));
  CHECK(matched.Waiting().empty());
}

TEST_CASE("a follower's sample gets the stack of its leader's", "[stack_matcher]") {
  Matched matched;
  const auto add = [&](PendingSample leader, std::initializer_list<uint64_t> followers) {
    matched.Add(leader);
    for (const uint64_t id : followers) {
      PendingSample follower = leader;
      follower.sample.time_ns = id, follower.sample.event = 7, follower.sample.samples = 0;
      matched.matcher.AddSample(kThread, 0, follower, [](const PendingSample&, bool) { FAIL(); });
    }
  };
  add(User(1, 0x100), {2});
  add(User(3, 0x100), {4, 5});
  add(User(6, 0x200), {7});
  CHECK(matched.Stack(0x100));
  CHECK(matched.emitted == "1- 2- 3+ 4+ 5+ ");
  CHECK(matched.Waiting() == "6 7 ");
}

TEST_CASE("samples before the stack's own were skipped, later ones wait", "[stack_matcher]") {
  Matched matched;
  for (uint64_t i = 1; i <= 4; ++i) matched.Add(User(i, 0x100 * i));
  CHECK(matched.Stack(0x300));
  CHECK(matched.emitted == "1- 2- 3+ ");
  CHECK(matched.Waiting() == "4 ");
  CHECK(matched.Stack(0x400));
  CHECK(matched.emitted == "1- 2- 3+ 4+ ");
}

TEST_CASE("of samples with one pc, the latest has the stack", "[stack_matcher]") {
  Matched matched;
  matched.Add(User(1, 0x100));
  matched.Add(User(2, 0x100));
  CHECK(matched.Stack(0x100));
  CHECK(matched.emitted == "1- 2+ ");
}

TEST_CASE("samples during one call of the kernel share its stack", "[stack_matcher]") {
  Matched matched;
  matched.Add(User(1, 0x100));
  matched.Add(Kernel(2, 0x200));
  matched.Add(Kernel(3, 0x200));
  matched.Add(Kernel(4, 0x200));
  CHECK(matched.Stack(0x200));
  CHECK(matched.emitted == "1- 2+ 3+ 4+ ");
}

TEST_CASE("another call of the kernel, or user code in between, ends the run", "[stack_matcher]") {
  Matched matched;
  matched.Add(Kernel(1, 0x100));
  matched.Add(Kernel(2, 0x200));
  SECTION("another call") {
    CHECK(matched.Stack(0x200));
    CHECK(matched.emitted == "1- 2+ ");
  }
  SECTION("user code at the same pc") {
    matched.Add(User(3, 0x200));
    matched.Add(Kernel(4, 0x200));
    CHECK(matched.Stack(0x200));
    CHECK(matched.emitted == "1- 2- 3- 4+ ");
  }
}

TEST_CASE("a call that is made again returns to itself", "[stack_matcher]") {
  Matched matched;
  matched.Add(Kernel(1, 0x200 + kCallBytes));
  CHECK(matched.Stack(0x200));
  CHECK(matched.emitted == "1+ ");
  matched.Add(User(2, 0x200 + kCallBytes));
  CHECK_FALSE(matched.Stack(0x200));
  CHECK(matched.Waiting() == "2 ");
}

TEST_CASE("threads and events do not share stacks", "[stack_matcher]") {
  Matched matched;
  matched.Add(User(1, 0x100));
  matched.Add(User(2, 0x100, 3));
  matched.Add(User(3, 0x100), kThread + 1);
  CHECK_FALSE(matched.Stack(0x100, 1));
  CHECK(matched.Stack(0x100, 3));
  CHECK(matched.Stack(0x100, 0, kThread + 1));
  CHECK(matched.emitted == "2+ 3+ ");
  CHECK(matched.Waiting() == "1 ");
}

TEST_CASE("a thread that ends leaves its samples without stacks", "[stack_matcher]") {
  Matched matched;
  matched.Add(User(1, 0x100));
  matched.Add(User(2, 0x100, 1));
  matched.Add(User(3, 0x100), kThread + 1);
  matched.matcher.End(kThread, [&](const PendingSample& old, bool has_stack) { matched.Note(old, has_stack); });
  CHECK(matched.emitted == "1- 2- ");
  CHECK(matched.Waiting() == "3 ");
  CHECK_FALSE(matched.Stack(0x100));  // of a later thread with that number
}

TEST_CASE("samples whose stacks never come do not pile up, and none is lost", "[stack_matcher]") {
  StackMatcher matcher;
  constexpr uint64_t kSamples = 100'000;
  uint64_t emitted = 0, waiting = 0;
  for (uint64_t i = 1; i <= kSamples; ++i) {
    matcher.AddSample(kThread, 0, User(i, i), [&](const PendingSample& sample, bool has_stack) {
      CHECK(sample.sample.time_ns == ++emitted);
      CHECK_FALSE(has_stack);
    });
  }
  matcher.ForEach([&](const PendingSample&) { ++waiting; });
  CHECK(emitted + waiting == kSamples);
  CHECK(waiting < 10'000);
}

}  // namespace
}  // namespace perfkit::session
