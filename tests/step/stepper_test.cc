// The stepper on code of known length.
#include "src/step/stepper.h"

#include <linux/sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <limits>
#include <string>
#include <vector>

#include "src/step/x86_64.h"
#include "tests/step/run.h"
#include "tests/support/work.h"

#if defined(__x86_64__)

namespace perfkit::step {
namespace {

// Regions of nothing but these instructions. Functions, not lambdas: those are reached through a thunk.
#define ASM_REGION(name, ...) \
  void name(void*) { asm volatile(__VA_ARGS__); }
ASM_REGION(NothingAtAll, "")
ASM_REGION(OneNop, "nop")
ASM_REGION(AskCpu, "mov %%rbx, %%r8\n xor %%eax, %%eax\n cpuid\n mov %%r8, %%rbx" ::: "rax", "rcx", "rdx", "r8")
ASM_REGION(ThreeOdd, "rdtsc\n pause\n mfence" ::: "eax", "edx", "memory")
ASM_REGION(TouchTwoPages, "movb $1, (%%rdi)\n movb $1, 4096(%%rdi)" ::: "memory")
ASM_REGION(JumpToItself, "mov $9, %%ecx\n 1: loop 1b" ::: "ecx")
ASM_REGION(RepBehindSyscall,
           "lea -8(%%rsp), %%rdi\n mov $39, %%eax\n mov $5, %%r8d\n syscall\n mov %%r8, %%rcx\n rep stosb" ::
               : "rdi", "rax", "rcx", "r8", "r11", "memory")
ASM_REGION(SevenSyscalls, ".rept 7\n mov $39, %%eax\n syscall\n .endr" ::: "rax", "rcx", "r11", "memory")

TEST_CASE("loops of n instructions count n, each time", "[stepper]") {
  OPEN_OR_SKIP(stepper);
  CHECK(stepper->constant() > 0);
  CHECK(stepper->constant() < 40);
  for (int i = 0; i < 5; ++i) {
    CHECK(stepper->Run(Loop<1>, nullptr)->instructions == 4);
    CHECK(stepper->Run(Loop<1000>, nullptr)->instructions == 2002);
    CHECK(stepper->Run(NothingAtAll, nullptr)->instructions == 0);
    CHECK(stepper->Run(OneNop, nullptr)->instructions == 1);
  }
}

TEST_CASE("instructions that are special to the CPU count once", "[stepper]") {
  OPEN_OR_SKIP(stepper);
  // cpuid leaves a virtual machine, xgetbv may; a load that faults starts again.
  CHECK(stepper->Run(AskCpu, nullptr)->instructions == 4);
  CHECK(stepper->Run(ThreeOdd, nullptr)->instructions == 3);
  testing::FreshPages fresh(2);
  CHECK(stepper->Run(TouchTwoPages, fresh.data())->instructions == 2);
  // A jump to itself is an instruction each time, unlike the rounds of rep.
  CHECK(stepper->Run(JumpToItself, nullptr)->instructions == 10);
}

TEST_CASE("rep counts once, its rounds beside it", "[stepper]") {
  OPEN_OR_SKIP(stepper);
  static char buffer[256];
  static volatile uint64_t bytes = 0;  // the code is the same for any number
  const auto fill = [] {
    void* at = buffer;
    uint64_t n = bytes;
    asm volatile("rep stosb" : "+D"(at), "+c"(n) : "a"(7) : "memory");
  };
  const uint64_t none = Length(*stepper, fill);
  for (const uint64_t n : {1, 2, 100}) {
    bytes = n;
    const auto count = StepCall(*stepper, fill);
    REQUIRE(count.ok());
    if (!testing::kSanitized) CHECK(count->instructions == none);
    CHECK(count->rounds == n - 1);
  }
  // Right after a system call, whose trap is lost.
  const auto after = stepper->Run(RepBehindSyscall, nullptr);
  CHECK(after->instructions == 6);
  CHECK(after->rounds == 4);
}

TEST_CASE("the decoder tells rep string instructions from all others", "[stepper]") {
  using step::IsRepeated;
  using Code = std::vector<uint8_t>;
  for (const Code& code : {Code{0xf3, 0xa4}, Code{0xf2, 0xae}, Code{0xf3, 0x48, 0xab}, Code{0x66, 0xf3, 0x67, 0xa5},
                           Code{0x64, 0xf2, 0x6c}}) {
    CHECK(IsRepeated(code.data()));
  }
  // pause, ret, movsb without rep, popcnt, an endless row of prefixes, prefixes without rep.
  for (const Code& code : {Code{0xf3, 0x90}, Code{0xc3}, Code{0xa4}, Code{0xf3, 0x0f, 0xb8, 0xc0}, Code(16, 0xf3),
                           Code{0x66, 0x48, 0xa5}}) {
    CHECK_FALSE(IsRepeated(code.data()));
  }
}

TEST_CASE("system calls and flags have the kernel's numbers", "[stepper]") {
  CHECK(number::kRtSigaction == SYS_rt_sigaction);
  CHECK(number::kRtSigprocmask == SYS_rt_sigprocmask);
  CHECK(number::kClone == SYS_clone);
  CHECK(number::kFork == SYS_fork);
  CHECK(number::kVfork == SYS_vfork);
  CHECK(number::kClone3 == SYS_clone3);
  CHECK(kSetThreadStorage == CLONE_SETTLS);
  CHECK(kClearHandlers == CLONE_CLEAR_SIGHAND);
}

TEST_CASE("seven system calls are seven, and their instructions are all there", "[stepper][law]") {
  OPEN_OR_SKIP(stepper);
  const auto calls = stepper->Run(SevenSyscalls, nullptr);
  CHECK(calls->system_calls == 7);
  CHECK(calls->instructions == 14);
  CHECK(StepCall(*stepper, [] {
          for (int i = 0; i < 7; ++i) syscall(SYS_getppid);
        })->system_calls == 7);
  CHECK(StepCall(*stepper, [] { testing::Spin(10); })->system_calls == 0);
}

void Leaf() { asm volatile(""); }
TEST_CASE("visits of watched addresses are counted", "[stepper]") {
  OPEN_OR_SKIP(stepper);
  void (*volatile leaf)() = Leaf;
  const uintptr_t watch[] = {reinterpret_cast<uintptr_t>(leaf), reinterpret_cast<uintptr_t>(&malloc)};
  const auto count = StepCall(*stepper,
                              [&] {
                                for (int i = 0; i < 13; ++i) leaf();
                                void* volatile memory = malloc(10);
                                free(memory);
                              },
                              {.watch = watch});
  REQUIRE(count.ok());
  CHECK(count->visits[0] == 13);
  CHECK(count->visits[1] == 1);
  const std::vector<uintptr_t> too_many(kMaxWatched + 1);
  CHECK(absl::IsInvalidArgument(stepper->Run(Loop<1>, nullptr, {.watch = too_many}).status()));
}

TEST_CASE("the budget ends the stepping, not the region", "[stepper][law]") {
  OPEN_OR_SKIP(stepper);
  CHECK(stepper->Run(Loop<49>, nullptr, {.budget = 100})->instructions == 100);
  CHECK(absl::IsResourceExhausted(stepper->Run(Loop<50>, nullptr, {.budget = 100}).status()));
  bool finished = false;
  const auto count = StepCall(*stepper,
                              [&] {
                                testing::Spin(1'000'000);
                                finished = true;
                              },
                              {.budget = 50});
  CHECK(absl::IsResourceExhausted(count.status()));
  CHECK(finished);
  CHECK(stepper->Run(Loop<1000>, nullptr)->instructions == 2002);
}

TEST_CASE("the text of a budget has the number that was set", "[stepper]") {
  OPEN_OR_SKIP(stepper);
  CHECK_THAT(std::string(stepper->Run(Loop<50>, nullptr, {.budget = 100}).status().message()),
             Catch::Matchers::Contains("more than the budget of 100 steps, MeasureOptions::step_budget"));
}

TEST_CASE("limits may be as large as their type", "[stepper]") {
  OPEN_OR_SKIP(stepper);
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  // More steps than one reading of the clock takes.
  const auto count = stepper->Run(Loop<999>, nullptr, {.budget = kMax, .cpu_limit_ns = kMax});
  INFO(count.status());
  REQUIRE(count.ok());
  CHECK(count->instructions == 2000);
}

TEST_CASE("the limit of CPU time ends the stepping, not the region", "[stepper][law]") {
  OPEN_OR_SKIP(stepper);
  bool finished = false;
  const auto count = StepCall(*stepper,
                              [&] {
                                testing::Spin(100'000);
                                finished = true;
                              },
                              {.budget = ~uint64_t{0} / 2, .cpu_limit_ns = 1});
  CHECK(absl::IsResourceExhausted(count.status()));
  CHECK(count.status().message().find("CPU time") != std::string::npos);
  CHECK(finished);
  CHECK(stepper->Run(Loop<1000>, nullptr, {.cpu_limit_ns = 0})->instructions == 2002);
  CHECK(stepper->Run(Loop<1000>, nullptr, {.cpu_limit_ns = ~uint64_t{0} / 2})->instructions == 2002);
}

}  // namespace
}  // namespace perfkit::step

#endif
