// Truncated stacks that are completed from earlier ones of their thread, compared with full dumps of the same stacks.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "perfkit/unwinder.h"
#include "src/unwind/dwarf/sampled/stack_stitcher.h"
#include "tests/support/allocations.h"
#include "tests/support/measurement.h"
#include "tests/support/record_builder.h"
#include "tests/unwind/dwarf/sampled/hand_sample.h"
#include "tests/unwind/dwarf/sampled/sampled_program.h"

namespace perfkit {
namespace {

constexpr uint32_t kWhole = 60 << 10, kFull = 32 << 10;

// Returns `record` as if `most` bytes of the stack had been requested. The stack is the last field. The kernel reserves
// less if the end of the address space is nearer, as for a shallow stack without address randomization.
std::string CutStack(const std::string& record, const SampleLayout& layout, uint64_t most) {
  const UserStack whole = Sample::Parse(testing::AsRecord(record), layout)->user_stack();
  const uint64_t bytes = std::min(most, whole.reserved);
  const auto* const data = reinterpret_cast<const char*>(whole.bytes.data());
  testing::RecordBuilder cut;
  cut.Raw(std::string_view(record).substr(8, static_cast<size_t>(data - record.data()) - 16)).U64(bytes);
  cut.Raw({data, bytes}).U64(std::min<uint64_t>(bytes, whole.bytes.size()));
  return cut.Finish(RecordType::kSample, testing::AsRecord(record).misc);
}

struct Stitched {
  size_t samples = 0, alone = 0, stitched = 0, complete = 0, wrong = 0;
  double bytes = 0;  // As a share of full dumps of all.

  void Print(const std::string& name, uint32_t dump, int every) const {
    std::printf(
        "%s: dumps of %u bytes, every %dth of %u: %.1f %% of the bytes; %zu samples, complete %.2f %%, alone %.2f %%, "
        "stitched %zu, wrong %zu (%.3f %%)\n",
        name.c_str(), dump, every, kFull, 100 * bytes, samples, Share(complete), Share(alone), stitched, wrong,
        Share(wrong));
  }
  double Share(size_t part) const { return 100.0 * static_cast<double>(part) / static_cast<double>(samples); }
};

// The results for stacks whose dumps are cut to `dump` bytes, and to kFull each `every`th time.
Stitched StitchCut(const testing::SampledProgram& program, uint32_t dump, int every) {
  Unwinder truth, unwinder({.stitch_bytes = 8 << 20});
  Stitched result;
  double bytes = 0;
  int turn = 0;
  std::vector<StackFrame> whole(1000), found(1000);
  for (const std::string& text : program.records()) {
    const RawRecord record = testing::AsRecord(text);
    truth.Add(record, program.layout());
    unwinder.Add(record, program.layout());
    const std::optional<Sample> sample = Sample::Parse(record, program.layout());
    if (!sample || sample->user_registers().abi == 0 || sample->user_stack().reserved == 0) continue;
    const bool full = turn++ % every == 0;
    const std::string cut = CutStack(text, program.layout(), full ? kFull : dump);
    const UnwoundStack stack = unwinder.Unwind(*Sample::Parse(testing::AsRecord(cut), program.layout()), found);
    bytes += full ? kFull : dump;
    if (full) continue;
    const UnwoundStack all = truth.Unwind(*sample, whole);
    ++result.samples;
    result.alone += stack.complete() && stack.stitched == 0;
    result.complete += stack.complete();
    result.stitched += stack.stitched > 0;
    // The whole dump has no data to compare beyond its end.
    bool same = !stack.complete() || !all.complete() || stack.frames == all.frames;
    for (uint32_t i = 0; i < std::min(stack.frames, all.frames); ++i) same = same && found[i].pc == whole[i].pc;
    result.wrong += !same;
  }
  result.bytes = bytes / (static_cast<double>(turn) * kFull);
  return result;
}

// Dumps of 6 KiB, and of 32 KiB for every 16th: as docs/sampling.md recommends.
constexpr uint32_t kDump = 6 << 10;
constexpr int kEvery = 16;

constexpr uint64_t kOften = 150'000, kSeldom = 1'000'000;

struct Program {
  std::string name;
  std::vector<std::string> command;
  uint64_t period_ns;  // between samples that have little in common: else one error counts many times
};

// Python's own calls of Python take no stack since 3.11; those by way of C do.
std::vector<Program> Programs() {
  const std::string python =
      "import re, functools\n"
      "def work(): return len(re.sub('a+', lambda m: str(len(m.group(0))), 'aab' * 50)) + len(sorted(range(100), "
      "key=lambda x: -x))\n"
      "def dive(n): return work() if n == 0 else functools.reduce(lambda a, b: a + dive(n - 1), [1], 0)\n"
      "while True:\n"
      "  for n in range(10, 60): dive(n)\n";
  const std::string sql =
      "with recursive c(x) as (select 1 union all select x + 1 from c) "
      "select sum(x * length(printf('%d', x))) from c where x like '%7%';";
  std::vector<Program> programs;
  for (Program program : {Program{"python3", {"/usr/bin/python3", "-c", python}, kSeldom},
                          Program{"sqlite3", {"/usr/bin/sqlite3", ":memory:", sql}, kOften}}) {
    if (access(program.command[0].c_str(), X_OK) == 0) {
      programs.push_back(std::move(program));
    } else {
      WARN("no " << program.command[0] << " here");
    }
  }
  return programs;
}

Stitched Measure(const Program& program, size_t enough) {
  const testing::SampledProgram sampled(program.command, CallStack::UserDump(kWhole), program.period_ns, enough);
  const Stitched result = StitchCut(sampled, kDump, kEvery);
  result.Print(program.name, kDump, kEvery);
  CHECK(result.samples >= enough * 9 / 10);
  CHECK(result.bytes <= 0.30);
  CHECK(result.stitched >= result.samples / 2);
  return result;
}

// Among a thousand samples, more are the first of their kind than among ten thousand; which ones is random.
constexpr size_t kMinPercent = 80;

TEST_CASE("stacks that were cut off are completed, by what was outside of them in truth", "[stitch][measurement]") {
  for (const Program& program : Programs()) {
    CHECK(testing::HoldsOnceInThree([&] {
      const Stitched result = Measure(program, 1200);
      CHECK(result.Share(result.wrong) <= 0.5);
      return result.Share(result.complete) >= kMinPercent;
    }));
  }
}

TEST_CASE("of many stacks that were cut off 98 % are completed, one in a thousand wrongly", "[.heavy][measurement]") {
  for (const Program& program : Programs()) {
    CHECK(testing::HoldsOnceInThree([&] {
      const Stitched result = Measure(program, 10'000);
      return result.Share(result.complete) >= 98 && result.Share(result.wrong) <= 0.1;
    }));
  }
}

struct LiveStitched {
  size_t samples = 0, complete = 0, complete_alone = 0, full = 0, bytes = 0;
};

// Unwinds each sample with `unwinder`, which stitches, and with `alone`, which does not, and compares the results.
LiveStitched UnwindBoth(const testing::SampledProgram& sampled, Unwinder& unwinder, Unwinder& alone,
                        std::vector<Sample>& views) {
  LiveStitched live;
  std::vector<StackFrame> frames(1000), frames_alone(1000);
  for (const std::string& text : sampled.records()) {
    const RawRecord record = testing::AsRecord(text);
    unwinder.Add(record, sampled.layout());
    alone.Add(record, sampled.layout());
    const std::optional<Sample> sample = Sample::Parse(record, sampled.layout());
    if (!sample || sample->user_registers().abi == 0) continue;
    const UnwoundStack stack = unwinder.Unwind(*sample, frames), own = alone.Unwind(*sample, frames_alone);
    live.bytes += sample->user_stack().reserved;
    live.full += sample->user_stack().reserved > kDump;
    live.samples += sample->user_stack().reserved == kDump;
    live.complete += stack.complete() && sample->user_stack().reserved == kDump;
    live.complete_alone += own.complete() && sample->user_stack().reserved == kDump;
    if (stack.stitched > 1) {
      const UnwoundStack few = unwinder.Unwind(*sample, std::span(frames).first(own.frames + 1));
      REQUIRE((few.frames == own.frames + 1 && few.stitched == 1 && few.end == StackEnd::kLimit));
    }
    if (views.size() < 300) views.push_back(*sample);
    // Frames from the sample's own copy are unchanged; all others are marked.
    REQUIRE(stack.frames - stack.stitched == own.frames);
    REQUIRE(own.stitched == 0);
    for (uint32_t i = 0; i < stack.frames; ++i) {
      REQUIRE(frames[i].is_stitched == (i >= own.frames));
      if (i < own.frames) REQUIRE(frames[i] == frames_alone[i]);
    }
  }
  return live;
}

// Returns false if fewer stacks are complete than usual. Which stacks are the first of their kind is random.
bool StitchesLive(const Program& program) {
  const testing::SampledProgram sampled(program.command, CallStack::UserDump(kDump, {.every = kEvery}), kOften, 1000);
  Unwinder unwinder({.stitch_bytes = 4 << 20}), alone;
  std::vector<Sample> views;
  const LiveStitched live = UnwindBoth(sampled, unwinder, alone, views);
  const double share = static_cast<double>(live.bytes) / static_cast<double>(live.samples * kFull);
  std::printf("%s, live: %zu samples and %zu full ones in %.1f %% of the bytes: %zu complete, %zu alone\n",
              program.name.c_str(), live.samples, live.full, 100 * share, live.complete, live.complete_alone);
  if (live.complete < live.samples * kMinPercent / 100) return false;
  CHECK(live.full >= live.samples / kEvery / 2);
  CHECK(share <= 0.30);
  CHECK(live.complete_alone <= live.samples / 2);
  CHECK(unwinder.stats().stitched_stacks >= live.complete - live.complete_alone);
  CHECK(unwinder.stats().stitch_bytes <= 4 << 20);
  CHECK(unwinder.stats().stitch_bytes > 0);
  CHECK(alone.stats().stitch_bytes == 0);
  if (!testing::kCountsNew) return true;
  // Each place for a stack has had the longest when all have come to each.
  std::vector<StackFrame> frames(1000);
  uint64_t allocations = 0;
  for (size_t round = 0; round <= unwind::StackStitcher::kStacks; ++round) {
    allocations = testing::allocations_so_far;
    for (const Sample& view : views) unwinder.Unwind(view, frames);
  }
  CHECK(testing::allocations_so_far == allocations);
  return true;
}

TEST_CASE("a sampler with full dumps gives what stitching needs, live", "[stitch][measurement]") {
  for (const Program& program : Programs()) {
    CHECK(testing::HoldsOnceInThree([&] { return StitchesLive(program); }));
  }
}

TEST_CASE("a stack says how many bytes of it are needed, not one word less", "[stitch][law]") {
  for (const Program& program : Programs()) {
    const testing::SampledProgram sampled(program.command, CallStack::UserDump(kWhole), kOften, 300);
    Unwinder unwinder;
    std::vector<StackFrame> whole(1000), cut(1000);
    StackUse use;
    std::vector<uint32_t> needed;
    for (const std::string& text : sampled.records()) {
      const RawRecord record = testing::AsRecord(text);
      unwinder.Add(record, sampled.layout());
      const std::optional<Sample> sample = Sample::Parse(record, sampled.layout());
      if (!sample || sample->user_registers().abi == 0) continue;
      const UnwoundStack stack = unwinder.Unwind(*sample, whole);
      if (!stack.complete() || stack.stack_bytes == 0) continue;
      const auto again = [&](uint32_t bytes) {
        const std::string shorter = CutStack(text, sampled.layout(), bytes);
        return unwinder.Unwind(*Sample::Parse(testing::AsRecord(shorter), sampled.layout()), cut);
      };
      REQUIRE(again(stack.stack_bytes) == stack);
      REQUIRE(std::equal(cut.begin(), cut.begin() + stack.frames, whole.begin()));
      REQUIRE(again(stack.stack_bytes - 8).end == (stack.stack_bytes == 8 ? StackEnd::kNoStack : StackEnd::kTruncated));
      use.Add(stack);
      needed.push_back(stack.stack_bytes);
    }
    REQUIRE(needed.size() >= 200);
    std::sort(needed.begin(), needed.end());
    for (const double share : {0.5, 0.9, 1.0}) {
      const auto held = static_cast<size_t>(std::ceil(share * static_cast<double>(needed.size())));
      const uint32_t least = needed[held - 1], bytes = use.BytesFor(share);
      INFO(bytes << " bytes for " << share << " of " << needed.size() << " stacks, " << held << " need " << least);
      CHECK((bytes % 1024 == 0 && bytes >= least && bytes < least + 1024));
    }
  }
}

TEST_CASE("the use of stacks follows the latest ones, and those that were cut off ask for all there is", "[stitch]") {
  StackUse use;
  CHECK(use.BytesFor(0.99) == 0);
  const auto add = [&](size_t count, StackEnd end, uint32_t bytes) {
    for (size_t i = 0; i < count; ++i) use.Add({.frames = 1, .end = end, .stack_bytes = bytes});
  };
  add(99, StackEnd::kRoot, 3000);
  CHECK((use.BytesFor(0) == 1024 && use.BytesFor(0.5) == 3072 && use.BytesFor(1) == 3072));
  add(1, StackEnd::kTruncated, 3000);
  CHECK((use.BytesFor(0.99) == 3072 && use.BytesFor(0.995) == kWhole && use.BytesFor(2) == kWhole));
  add(10'000, StackEnd::kRoot, 9 << 10);
  CHECK((use.BytesFor(0.1) == 9 << 10 && use.BytesFor(0.999) == 9 << 10));
  add(20'000, StackEnd::kRoot, UINT32_MAX);
  CHECK(use.BytesFor(0.5) == kWhole);
}

#if defined(__x86_64__)

extern "C" {
void perfkit_stitch_return();
void perfkit_stitch_callee();
}
asm(R"(
  .text
  .fill 64, 1, 0xcc
  .p2align 4
perfkit_stitch_caller:
  .cfi_startproc
  sub $8, %rsp
  .cfi_adjust_cfa_offset 8
  call perfkit_stitch_callee
perfkit_stitch_return:
  add $8, %rsp
  .cfi_adjust_cfa_offset -8
  ret
  .cfi_endproc
  .fill 64, 1, 0xcc
  .p2align 4
perfkit_stitch_callee:
  .cfi_startproc
  nop
  ret
  .cfi_endproc
  .fill 64, 1, 0xcc
)");

TEST_CASE("a stack is not stitched to a call that another sample has shown to have returned", "[stitch]") {
  const auto callee = reinterpret_cast<uint64_t>(&perfkit_stitch_callee);
  const auto caller = reinterpret_cast<uint64_t>(&perfkit_stitch_return);
  const uint64_t words[] = {caller, 0, callee, 0, 0};
  Unwinder unwinder({.stitch_bytes = 1 << 20});
  REQUIRE(unwinder.AddProcess(getpid()).ok());
  std::vector<StackFrame> frames(16);
  const auto unwind = [&](uint64_t pc, uint64_t sp, size_t bytes) {
    const auto* const stack = reinterpret_cast<const char*>(words) + (sp - 0x7000);
    const testing::HandSample sample(static_cast<uint32_t>(getpid()), testing::RegistersOf(pc, sp),
                                     std::string(stack, bytes));
    return unwinder.Unwind(sample.sample(), frames);
  };
  (void)unwind(callee, 0x7000, 8);
  REQUIRE(unwind(callee, 0x7000, sizeof(words)).complete());
  CHECK(unwind(callee, 0x7000, 4).stitched == 2);
  CHECK(unwind(caller, 0x7008, 24).frames > 0);  // It is in the caller again.
  CHECK(unwind(callee, 0x7000, 4).end == StackEnd::kTruncated);
}

TEST_CASE("a stack is not stitched without room for a frame", "[stitch]") {
  const auto callee = reinterpret_cast<uint64_t>(&perfkit_stitch_callee);
  // The return address at the callee's begin is planted: the root.
  const uint64_t words[] = {reinterpret_cast<uint64_t>(&perfkit_stitch_return), 0, callee, 0, 0};
  Unwinder unwinder({.stitch_bytes = 1 << 20});
  REQUIRE(unwinder.AddProcess(getpid()).ok());
  std::vector<StackFrame> frames(16);
  const auto unwind = [&](size_t bytes, size_t room) {
    const testing::HandSample sample(static_cast<uint32_t>(getpid()), testing::RegistersOf(callee, 0x7000),
                                     std::string(reinterpret_cast<const char*>(words), bytes));
    return unwinder.Unwind(sample.sample(), std::span(frames).first(room));
  };
  (void)unwind(8, frames.size());
  REQUIRE(unwind(sizeof(words), frames.size()).complete());
  const UnwoundStack whole = unwind(4, frames.size()), none = unwind(4, 1);
  CHECK((whole.complete() && whole.frames == 3 && whole.stitched == 2));
  CHECK((none.end == StackEnd::kLimit && none.frames == 1 && none.stitched == 0 && none.stack_bytes == 0));
  CHECK(unwinder.stats().stitched_stacks == 1);
}

#endif

TEST_CASE("hostile stacks are stitched to hostile stacks within the room for frames and memory", "[stitch]") {
  constexpr size_t kMemory = 64 << 10;
  Unwinder unwinder({.stitch_bytes = kMemory});
  REQUIRE(unwinder.AddProcess(getpid()).ok());
  std::mt19937_64 random(7);
  const uint64_t codes[] = {reinterpret_cast<uint64_t>(&qsort), reinterpret_cast<uint64_t>(&Programs),
                            reinterpret_cast<uint64_t>(&snprintf)};
  const auto word = [&]() -> uint64_t {
    return random() % 3 == 0 ? 0x7000 + random() % 4096 : codes[random() % std::size(codes)] + random() % 2;
  };
  std::vector<StackFrame> frames(40);
  size_t stitched = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string stack(random() % 4 == 0 ? 4096 : 8 * (random() % 40), '\0');
    for (size_t at = 0; at < stack.size(); at += 8) {
      const uint64_t value = random() % 8 == 0 ? 0 : word();
      std::memcpy(stack.data() + at, &value, 8);
    }
    const testing::HandSample sample(static_cast<uint32_t>(getpid()),
                                     testing::RegistersOf(word(), 0x7000 + 8 * (random() % 4), word()), stack);
    const UnwoundStack found = unwinder.Unwind(sample.sample(), frames);
    REQUIRE(found.frames <= frames.size());
    REQUIRE(found.stitched <= found.frames);
    for (uint32_t k = 0; k < found.frames; ++k) REQUIRE(frames[k].is_stitched == (k >= found.frames - found.stitched));
    stitched += found.stitched > 0;
  }
  CHECK(unwinder.stats().stitch_bytes <= kMemory);
  CHECK(unwinder.stats().stitched_stacks == stitched);
  CHECK(stitched > 0);
  std::printf("%zu stitched of 20000 random stacks\n", stitched);
}

}  // namespace
}  // namespace perfkit
