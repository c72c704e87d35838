// What a sample says of its place on arm64: all registers, the stack, and the chain of calls with the leaf's caller.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "perfkit/symbolizer.h"
#include "tests/pmu/samples.h"

namespace perfkit {
namespace {

using testing::Every;
using testing::ForEachSample;
using testing::kSampledRounds;
using testing::Loop;
using testing::Sampled;

#if defined(__aarch64__)
// arch/arm64/include/uapi/asm/perf_regs.h: X0 to X30, then these.
constexpr unsigned kFramePointer = 29, kSp = 31, kPc = 32;
constexpr uint64_t kMark = 0x5000;  // register n holds this and n
constexpr unsigned kPlatform = 18;  // reserved: no code writes it

// Loops with a value of its own in each register that code may use, and a pattern on the stack.
__attribute__((noinline)) void LoopWithMarks(uint64_t rounds, const volatile uint64_t* pattern) {
  register uint64_t left asm("x0") = rounds;
  asm volatile(
      ".irp n, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,19,20,21,22,23,24,25,26,27,28\n"
      "  mov x\\n, #(0x5000 + \\n)\n"
      ".endr\n"
      "1: subs x0, x0, #1\n"
      "   b.ne 1b\n"
      : "+r"(left)
      : "m"(*pattern)
      : "cc", "memory", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15",
        "x16", "x17", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28");
}

// By where the work was, seen from its caller.
struct Marked {
  uint64_t pattern[4] = {0x1badb002feedface, 2, 0x1badb002feedface, 4};
  uint64_t frame = 0;
};
__attribute__((noinline)) void RunMarked(Marked& marked) {
  volatile uint64_t pattern[4];
  for (size_t i = 0; i < 4; ++i) pattern[i] = marked.pattern[i];
  marked.frame = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  LoopWithMarks(kSampledRounds, pattern);
}

TEST_CASE("a sample has all registers of its place, and the stack", "[sampling]") {
  NEED_EXACT_PMU();
  SamplerOptions options = Every("cycles:u", 100'000 * testing::CyclesPerInstruction());
  options.stack = CallStack::UserDump(1024);
  Marked marked;
  Sampler sampler = Sampled(options, [&] { RunMarked(marked); });
  uint64_t samples = 0;
  ForEachSample(sampler, [&](const Sample& sample, const SamplerRecord&) {
    const Registers registers = sample.user_registers();
    CHECK(registers.values.size() == 33);
    REQUIRE(registers[kPc].has_value());
    CHECK(*registers[kPc] == *sample.ip());
    if (*registers[1] != kMark + 1) return;  // not in the loop, or not yet
    ++samples;
    CHECK(*registers[0] <= kSampledRounds);
    for (unsigned n = 1; n < kFramePointer; ++n) {
      CAPTURE(n);
      if (n != kPlatform) CHECK(*registers[n] == kMark + n);
    }
    CHECK(*registers[kFramePointer] <= marked.frame);
    CHECK(*registers[kFramePointer] >= *registers[kSp]);
    CHECK(*registers[kSp] % 16 == 0);
    CHECK(*registers[kSp] < marked.frame);
    // The caller's frame, where it lies.
    const Bytes stack = sample.user_stack().bytes;
    const std::string_view bytes(reinterpret_cast<const char*>(stack.data()), stack.size());
    const std::string_view pattern(reinterpret_cast<const char*>(marked.pattern), sizeof(marked.pattern));
    CHECK(stack.size() == 1024);
    CHECK(bytes.find(pattern) < marked.frame + 64 - *registers[kSp]);
  });
  CHECK(samples >= 38);
}

// Each has a frame record and calls the next one; the asm after it keeps that from becoming a jump.
#define PERFKIT_STEP(name, next)                                  \
  __attribute__((noinline, noclone)) void name(uint64_t rounds) { \
    next(rounds);                                                 \
    asm volatile("");                                             \
  }
PERFKIT_STEP(Inner, Loop)
PERFKIT_STEP(Middle, Inner)
PERFKIT_STEP(Outer, Middle)

// No leaf: it has called a function before it loops.
__attribute__((noinline, noclone)) void CallsThenLoops(uint64_t rounds) {
  Loop(1);
  asm volatile("1: subs %0, %0, #1\n b.ne 1b" : "+r"(rounds) : : "cc");
}
PERFKIT_STEP(AroundCallsThenLoops, CallsThenLoops)
#undef PERFKIT_STEP

// The functions of a chain by name, innermost first, as docs/sampling.md says how to: the leaf's caller in its place,
// unless it is the leaf.
std::string NamesOf(const Sample& sample, Symbolizer& symbolizer, size_t most) {
  const auto pid = static_cast<uint32_t>(getpid());
  const auto name = [&](uint64_t pc) {
    const std::string_view function = symbolizer.Resolve(pid, pc).function;
    const std::string_view scoped = function.substr(0, function.rfind('('));
    const size_t scope = scoped.rfind("::");
    return std::string(scoped.substr(scope == std::string_view::npos ? 0 : scope + 2)) + ' ';
  };
  const Words pcs = sample.chain().part(ChainContext::kUser);
  std::string names = name(pcs[0]);
  size_t size = 1;
  if (const auto caller = sample.leaf_caller(); caller && name(*caller - 1) != names)
    names += name(*caller - 1), ++size;
  for (size_t i = 1; i < pcs.size() && size < most; ++i, ++size) names += name(pcs[i] - 1);
  return names;
}

TEST_CASE("a chain by frame pointers has the leaf's caller, too", "[sampling]") {
  NEED_EXACT_PMU();
  SamplerOptions options = Every("cycles:u", 50'000 * testing::CyclesPerInstruction());
  options.stack = CallStack::FramePointers();
  struct Case {
    void (*work)(uint64_t);
    const char* names;
  };
  const Case kCases[] = {
      {&Outer, "Loop Inner Middle Outer "},
      {&AroundCallsThenLoops, "CallsThenLoops AroundCallsThenLoops "},
  };
  for (const Case& c : kCases) {
    Symbolizer symbolizer;
    REQUIRE(symbolizer.AddProcess(getpid()).ok());
    Sampler sampler = Sampled(options, [&] { c.work(kSampledRounds); });
    const std::string_view expected = c.names;
    const auto calls = static_cast<size_t>(std::ranges::count(expected, ' '));
    uint64_t samples = 0;
    std::map<std::string, uint64_t> seen;
    ForEachSample(sampler, [&](const Sample& sample, const SamplerRecord&) {
      ++samples;
      const Words pcs = sample.chain().part(ChainContext::kUser);
      REQUIRE_FALSE(pcs.empty());
      CHECK(pcs[0] == *sample.ip());
      ++seen[NamesOf(sample, symbolizer, calls)];
    });
    for (const auto& [names, times] : seen) UNSCOPED_INFO(times << " times " << names);
    CHECK(seen[c.names] + 3 >= samples);
    CHECK(samples >= 80);
  }
}
#endif

}  // namespace
}  // namespace perfkit
