// Traps that are steps though they look like breakpoints, and breakpoints amid steps: crafted ones, and real ones.
#include <cpuid.h>
#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "src/step/session.h"
#include "src/step/stepper.h"
#include "src/step/x86_64.h"
#include "src/sys/signals.h"
#include "tests/step/run.h"
#include "tests/sys/in_child.h"

#if defined(__x86_64__)

namespace perfkit::step {
namespace {

using testing::InChild;
using Code = std::vector<uint8_t>;

constexpr greg_t kFlag = static_cast<greg_t>(kTrapFlag);

// A session whose last step executed all of `code`, and the trap that follows.
struct CraftedTrap {
  explicit CraftedTrap(const Code& bytes, greg_t flags = kFlag) : code(bytes) {
    code.insert(code.end(), {0x90, 0x90});  // what comes next
    session.budget = 10;
    session.last = reinterpret_cast<uintptr_t>(code.data());
    registers.uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(session.last + bytes.size());
    registers.uc_mcontext.gregs[REG_EFL] = flags;
  }
  bool Arrive(int si_code) {
    siginfo_t info{};
    info.si_signo = SIGTRAP;
    info.si_code = si_code;
    return OnStep(&session, info, registers);
  }
  bool flag() const { return (registers.uc_mcontext.gregs[REG_EFL] & kFlag) != 0; }

  Code code;
  Session session;
  ucontext_t registers{};
};

TEST_CASE("a step that arrives as TRAP_BRKPT is a step", "[stepper]") {
  // nop; mov %esi, %ecx and push $-15, whose last byte is icebp's; popf.
  for (const Code& code : {Code{0x90}, Code{0x89, 0xf1}, Code{0x6a, 0xf1}, Code{0x9d}}) {
    CraftedTrap trap(code);
    CHECK(trap.Arrive(TRAP_BRKPT));
    CHECK(trap.session.count.instructions == 1);
    CHECK(trap.session.ending == Ending::kNone);
    CHECK(trap.flag());
  }
  CraftedTrap first(Code{0x90});
  first.session.last = 0;  // the first instruction was not looked at
  CHECK(first.Arrive(TRAP_BRKPT));
  CHECK(first.session.ending == Ending::kNone);
}

TEST_CASE("popf may clear the flag in a step that arrives as TRAP_BRKPT", "[stepper]") {
  CraftedTrap popf(Code{0x9d}, 0);
  CHECK(popf.Arrive(TRAP_BRKPT));
  CHECK(popf.session.count.instructions == 1);
  CraftedTrap nop(Code{0x90}, 0);  // in a signal handler amid the region, say
  CHECK_FALSE(nop.Arrive(TRAP_BRKPT));
  CHECK(nop.session.ending == Ending::kForeignTrap);
}

TEST_CASE("a trap that is no step is handed on, and leaves no number", "[stepper]") {
  for (const Code& icebp : {Code{0xf1}, Code{0x66, 0xf1}, Code{0x48, 0xf1}}) {
    CraftedTrap trap(icebp);
    CHECK_FALSE(trap.Arrive(TRAP_BRKPT));
    CHECK(trap.session.ending == Ending::kForeignTrap);
    CHECK_FALSE(trap.flag());  // nor does its owner see a flag that it has not set
  }
  for (const int code : std::initializer_list<int>{SI_KERNEL, SI_USER, SI_TKILL, TRAP_HWBKPT}) {
    CraftedTrap trap(Code{0x90});
    CHECK_FALSE(trap.Arrive(code));
    CHECK(trap.session.ending == Ending::kForeignTrap);
    CHECK(trap.Arrive(TRAP_TRACE));  // where a signal handler's return brings the flag back
    CHECK_FALSE(trap.flag());
    CHECK(trap.session.ending == Ending::kForeignTrap);
  }
}

// Put over perfkit's handler: says of each step that it is a breakpoint.
struct sigaction g_ours;
void CallItBreakpoint(int signal, siginfo_t* info, void* registers) {
  if (info->si_code == TRAP_TRACE) info->si_code = TRAP_BRKPT;
  g_ours.sa_sigaction(signal, info, registers);
}

// Instructions of `region`; 0 where there is no number.
uint64_t StepsOf(void (*region)(void*), void (*over)(int, siginfo_t*, void*), bool executes_cpuid = false) {
  Session session;
  session.executes_cpuid = executes_cpuid;
  session.budget = 100'000;
  session.swallowed = Stepper::Open()->swallows_system_calls() ? 1 : 0;
  auto claim = sys::TrapClaim::OfThisThread(OnStep, &session);
  sigaction(SIGTRAP, nullptr, &g_ours);
  struct sigaction act = g_ours;
  if (over != nullptr) act.sa_sigaction = over;
  sigaction(SIGTRAP, &act, nullptr);
  RunUnderTrapFlag(session, region, nullptr);
  sigaction(SIGTRAP, &g_ours, nullptr);
  return claim.ok() && session.ending == Ending::kNone ? session.count.instructions : 0;
}

void CallsAndRounds(void*) {
  asm volatile(
      ".rept 2\n mov $39, %%eax\n syscall\n .endr\n"
      "lea -8(%%rsp), %%rsi\n mov $3, %%ecx\n rep lodsb" ::
          : "rax", "rcx", "r11", "rsi", "memory");
}

TEST_CASE("a region counts the same if every step arrives as TRAP_BRKPT", "[stepper]") {
  OPEN_OR_SKIP(stepper);
  for (void (*const region)(void*) : {Loop<1000>, CallsAndRounds}) {
    CHECK(InChild([&] {
            const uint64_t steps = StepsOf(region, nullptr);
            return steps != 0 && StepsOf(region, CallItBreakpoint) == steps;
          }) == 0);
  }
}

uint32_t g_leaf[4];  // What cpuid says in a region: eax, ebx, ecx, edx.
constexpr uint64_t kStoreLeafLength = 14;
void StoreLeaf(void*) {
  asm volatile(
      "mov %%rbx, %%r8\n xor %%eax, %%eax\n xor %%ecx, %%ecx\n cpuid\n"
      "mov %%eax, (%%rdi)\n mov %%ebx, 4(%%rdi)\n mov %%ecx, 8(%%rdi)\n mov %%edx, 12(%%rdi)\n"
      "xor %%eax, %%eax\n cpuid\n cpuid\n mov $39, %%eax\n syscall\n mov %%r8, %%rbx" ::"D"(g_leaf)
      : "rax", "rcx", "rdx", "r8", "r11", "memory");
}
void PassLeaf(void*) { asm volatile("" ::"D"(g_leaf) : "rax", "rcx", "rdx", "r8", "r11", "memory"); }

TEST_CASE("a region counts and learns the same if the handler executes its cpuid", "[stepper][law]") {
  OPEN_OR_SKIP(stepper);
  CHECK(InChild([&] {
          const uint64_t steps = StepsOf(StoreLeaf, nullptr, true);
          uint32_t leaf[4];
          __cpuid_count(0, 0, leaf[0], leaf[1], leaf[2], leaf[3]);
          return steps - StepsOf(PassLeaf, nullptr, true) == kStoreLeafLength && std::equal(leaf, leaf + 4, g_leaf);
        }) == 0);
  const uint64_t steps = stepper->Run(StoreLeaf, nullptr)->instructions;
  CHECK(steps - stepper->Run(PassLeaf, nullptr)->instructions == kStoreLeafLength);
}

volatile int g_steps = 0, g_breakpoints = 0;
void OwnTraps(int, siginfo_t* info, void*) {
  const bool step = info->si_code == TRAP_TRACE;
  g_steps = g_steps + step;
  g_breakpoints = g_breakpoints + !step;
  if (g_steps + g_breakpoints > 1000) _exit(1);  // A hypervisor was seen to repeat icebp under the trap flag for ever.
}
bool HandleTraps() {
  struct sigaction act {};
  act.sa_sigaction = OwnTraps;
  act.sa_flags = SA_SIGINFO;
  return sigaction(SIGTRAP, &act, nullptr) == 0;
}

// Whether icebp under the trap flag is told from a step here: it sets no bit of DR6, unless a hypervisor adds one.
bool IcebpIsNoStep() {
  return InChild([] {
           HandleTraps();
           asm volatile(
               "sub $128, %%rsp\n pushfq\n orq $0x100, (%%rsp)\n popfq\n .byte 0xf1\n"
               "pushfq\n andq $~0x100, (%%rsp)\n popfq\n add $128, %%rsp" ::
                   : "memory", "cc");
           return g_breakpoints == 1;
         }) == 0;
}

bool g_finished = false;
void Icebp(void*) {
  asm volatile("nop\n .byte 0xf1\n nop");
  g_finished = true;
}
void Int3(void*) {
  asm volatile("nop\n int3\n nop");
  g_finished = true;
}
void Raise(void*) {
  raise(SIGTRAP);
  g_finished = true;
}

TEST_CASE("a breakpoint or a sent SIGTRAP in the region reaches its handler, and leaves no number", "[stepper]") {
  OPEN_OR_SKIP(stepper);
  for (void (*const region)(void*) : {Icebp, Int3, Raise}) {
    if (region == Icebp && !IcebpIsNoStep()) continue;
    CHECK(InChild([&] {
            HandleTraps();
            const auto opened = Stepper::Open();
            const auto count = opened->Run(region, nullptr);
            return absl::IsFailedPrecondition(count.status()) && g_breakpoints == 1 && g_steps == 0 && g_finished &&
                   opened->Run(Loop<1000>, nullptr)->instructions == 2002;
          }) == 0);
    // Without a handler it ends the process, as it does without perfkit.
    CHECK(InChild([&] { return Stepper::Open()->Run(region, nullptr).ok(); }) == 1000 + SIGTRAP);
  }
}

}  // namespace
}  // namespace perfkit::step

#endif
