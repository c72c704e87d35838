// The trap handler of the stepper. All code here runs in a signal handler, except RunUnderTrapFlag. After each
// instruction the kernel sends SIGTRAP, and the handler counts it and looks at the next instruction. It emulates, or
// prepares for, the few instructions that would end the stepping: changes of the signal mask, new threads and
// processes, and handlers for SIGTRAP. It gives up, with a reason, rather than count wrongly: the region then runs on
// without the flag.
#include "src/step/session.h"

#if defined(__x86_64__)

#include <cpuid.h>

#include <atomic>

#include "src/step/x86_64.h"
#include "src/sys/handler_calls.h"

namespace perfkit::step {
namespace {

constexpr uint64_t kTrapBit = uint64_t{1} << (SIGTRAP - 1);
constexpr uint64_t kNeverBlocked = uint64_t{1} << (SIGKILL - 1) | uint64_t{1} << (SIGSTOP - 1);
constexpr uint64_t kKernelHalf = uint64_t{1} << 63;  // vsyscall: its page may be executed but not read.

using Registers = greg_t*;

PERFKIT_IN_HANDLER bool HasTrapFlag(const ucontext_t& registers) {
  return (registers.uc_mcontext.gregs[REG_EFL] & static_cast<greg_t>(kTrapFlag)) != 0;
}

PERFKIT_IN_HANDLER uint64_t& MaskOf(ucontext_t& registers) { return reinterpret_cast<uint64_t&>(registers.uc_sigmask); }

// The code runs on without the flag, with the signal mask that it believes to have.
PERFKIT_IN_HANDLER void StopStepping(const Session& session, ucontext_t& registers) {
  registers.uc_mcontext.gregs[REG_EFL] &= ~static_cast<greg_t>(kTrapFlag);
  if (session.trap_blocked) MaskOf(registers) |= kTrapBit;
}

// As StopStepping, for the region itself: later changes of its mask are not seen.
PERFKIT_IN_HANDLER void EndStepping(Session& session, ucontext_t& registers) {
  StopStepping(session, registers);
  session.trap_blocked = false;
}

// The first reason stays.
PERFKIT_IN_HANDLER void GiveUp(Session& session, ucontext_t& registers, Ending why) {
  if (session.ending == Ending::kNone) session.ending = why;
  EndStepping(session, registers);
}

// Returns true if the trap is a single step of this thread, and false if it is another trap: a breakpoint, or a signal
// that a process sent.
//
// Some hypervisors lose DR6.BS about once in 560,000 steps. Linux takes a debug exception with an empty DR6 for icebp
// and sends TRAP_BRKPT instead of TRAP_TRACE (arch/x86/kernel/traps.c, exc_debug_user). int3 comes as SI_KERNEL. So
// such a trap is a step unless the instruction before it was icebp. In a signal handler that interrupts the region the
// flag is clear: there it is a breakpoint, unless popf has just cleared the flag.
PERFKIT_IN_HANDLER bool IsStep(const Session& session, const siginfo_t& info, const ucontext_t& registers) {
  if (info.si_code == TRAP_TRACE) return true;
  if (info.si_code != TRAP_BRKPT || session.last >= kKernelHalf) return false;
  const auto* const start = reinterpret_cast<const uint8_t*>(session.last);
  const auto* const end = reinterpret_cast<const uint8_t*>(registers.uc_mcontext.gregs[REG_RIP]);
  if (!HasTrapFlag(registers)) return IsOneByte(start, end, kPopf);
  return session.last == 0 || !IsOneByte(start, end, kIcebp);
}

// Does rt_sigprocmask(how, set, before, size) as the kernel would, but keeps SIGTRAP unblocked. The thread's mask is
// the one to which this handler returns. `size`: of the call's instruction. Returns false if the kernel should do it
// (and refuse it). A bad pointer ends in SIGSEGV, where the kernel returns EFAULT.
PERFKIT_IN_HANDLER bool ChangeMask(Session& session, ucontext_t& registers, int size) {
  const Registers at = registers.uc_mcontext.gregs;
  if (at[REG_R10] != sizeof(uint64_t) || at[REG_RDI] < SIG_BLOCK || at[REG_RDI] > SIG_SETMASK) return false;
  uint64_t& mask = MaskOf(registers);
  const uint64_t before = mask | (session.trap_blocked ? kTrapBit : 0);
  if (const auto* const set = reinterpret_cast<const uint64_t*>(at[REG_RSI])) {
    uint64_t now = *set;
    if (at[REG_RDI] == SIG_BLOCK) now = before | *set;
    if (at[REG_RDI] == SIG_UNBLOCK) now = before & ~*set;
    session.trap_blocked = (now & kTrapBit) != 0;
    mask = now & ~(kTrapBit | kNeverBlocked);
  }
  if (auto* const out = reinterpret_cast<uint64_t*>(at[REG_RDX])) *out = before;
  at[REG_RAX] = 0;
  at[REG_RCX] = at[REG_RIP] + size;  // As `syscall` leaves them.
  at[REG_R11] = at[REG_EFL];
  at[REG_RIP] += size;
  return true;
}

// Executes the region's cpuid. As each instruction that writes a 32-bit register, it clears the upper half.
PERFKIT_IN_HANDLER void ExecuteCpuid(ucontext_t& registers) {
  const Registers at = registers.uc_mcontext.gregs;
  unsigned a = 0, b = 0, c = 0, d = 0;
  __cpuid_count(static_cast<unsigned>(at[REG_RAX]), static_cast<unsigned>(at[REG_RCX]), a, b, c, d);
  at[REG_RAX] = a;
  at[REG_RBX] = b;
  at[REG_RCX] = c;
  at[REG_RDX] = d;
  at[REG_RIP] += kCpuidSize;
}

// A child starts with its parent's flags. A new process has a copy of this session, or shares it while its parent waits
// (vfork), and is recognised by its thread id. With a new thread there is no number: the region's instructions would
// depend on the scheduler, and those of the thread are not seen. So the thread starts without the flag.
PERFKIT_IN_HANDLER void PrepareClone(Session& session, ucontext_t& registers) {
  const greg_t* const at = registers.uc_mcontext.gregs;
  uint64_t flags = 0;
  if (at[REG_RAX] == number::kClone) flags = static_cast<uint64_t>(at[REG_RDI]);
  if (at[REG_RAX] == number::kClone3) flags = *reinterpret_cast<const uint64_t*>(at[REG_RDI]);
  if ((flags & kClearHandlers) != 0) return GiveUp(session, registers, Ending::kBareProcess);
  const bool runs_beside = (flags & kShareMemory) != 0 && (flags & kSuspendParent) == 0;
  if (runs_beside || (flags & kSetThreadStorage) != 0) return GiveUp(session, registers, Ending::kThread);
  session.maybe_other = true;
}

// SIGTRAP is handled by perfkit, which knows what was sent.
PERFKIT_IN_HANDLER bool IsHandled(greg_t signal) {
  return signal != SIGTRAP && sys::HandlerIsSet(static_cast<int>(signal));
}

// Returns true if the call may send this thread a signal that has a handler. Handlers run without the trap flag, so
// what they do is not counted. Signals of other senders, of timers, of faults, and SIGPIPE cannot be foreseen.
PERFKIT_IN_HANDLER bool SendsToItself(const Session& session, const ucontext_t& registers) {
  const greg_t* const at = registers.uc_mcontext.gregs;
  const auto first = static_cast<pid_t>(at[REG_RDI]), second = static_cast<pid_t>(at[REG_RSI]);
  switch (at[REG_RAX]) {
    case number::kKill:  // 0, -1 and other negative numbers are groups.
    case number::kRtSigqueueinfo: return (first <= 0 || first == session.process) && IsHandled(at[REG_RSI]);
    case number::kTkill: return first == session.thread && IsHandled(at[REG_RSI]);
    case number::kTgkill:
    case number::kRtTgsigqueueinfo: return second == session.thread && IsHandled(at[REG_RDX]);
    case number::kPidfdSendSignal: return IsHandled(at[REG_RSI]);  // The descriptor may be of any process.
    default: return false;
  }
}

// Runs before a system call. Returns true if the call was done here, so that the next instruction is another one.
PERFKIT_IN_HANDLER bool PrepareSystemCall(Session& session, ucontext_t& registers, int size) {
  const Registers at = registers.uc_mcontext.gregs;
  if (SendsToItself(session, registers)) {
    GiveUp(session, registers, Ending::kSignal);
    return false;
  }
  switch (at[REG_RAX]) {
    case number::kRtSigprocmask: return ChangeMask(session, registers, size);
    case number::kRtSigaction:
      if (at[REG_RDI] == SIGTRAP && at[REG_RSI] != 0) GiveUp(session, registers, Ending::kHandler);
      return false;
    case number::kClone:
    case number::kClone3:
    case number::kFork:
    case number::kVfork: PrepareClone(session, registers); return false;
    default: return false;
  }
}

// Looks at the next instruction, and continues past those that are done here.
PERFKIT_IN_HANDLER void LookAhead(Session& session, ucontext_t& registers) {
  const Registers at = registers.uc_mcontext.gregs;
  while (true) {
    const auto next = static_cast<uintptr_t>(at[REG_RIP]);
    session.last = next;
    for (size_t i = 0; i < session.watched; ++i) session.visits[i] += session.watch[i] == next;
    if (next >= kKernelHalf) return;
    const auto* const code = reinterpret_cast<const uint8_t*>(next);
    if (session.executes_cpuid && IsCpuid(code)) {
      ExecuteCpuid(registers);
      ++session.count.instructions;
      continue;
    }
    const int prefixes = PrefixesOf(code);
    if (IsSystemCallOf32Bits(code + prefixes)) return GiveUp(session, registers, Ending::kOldCall);
    if (!IsSystemCall(code + prefixes)) return;
    const int size = prefixes + kSystemCallSize;
    ++session.count.system_calls;
    if (!PrepareSystemCall(session, registers, size)) {
      session.count.instructions += session.swallowed;
      if (session.swallowed != 0)
        session.last = next + static_cast<uintptr_t>(size);  // The next trap belongs to the instruction after it.
      return;
    }
    ++session.count.instructions;
  }
}

// Takes one step from the budget. Reads the clock every 1,024 steps only, as that takes a tenth of a step.
PERFKIT_IN_HANDLER Ending Spend(Session& session) {
  if (session.budget-- == 0) return Ending::kBudget;
  if (session.budget % 1024 != 0 || session.cpu_end_ns == 0) return Ending::kNone;
  return sys::HandlerNow(CLOCK_THREAD_CPUTIME_ID) < session.cpu_end_ns ? Ending::kNone : Ending::kTime;
}

PERFKIT_IN_HANDLER void CountStep(Session& session, ucontext_t& registers) {
  if (const Ending over = Spend(session); over != Ending::kNone) return GiveUp(session, registers, over);
  const auto next = static_cast<uintptr_t>(registers.uc_mcontext.gregs[REG_RIP]);
  if (next == session.last && next < kKernelHalf && IsRepeated(reinterpret_cast<const uint8_t*>(next))) {
    ++session.count.rounds;
    return;
  }
  ++session.count.instructions;
  if (!HasTrapFlag(registers)) return EndStepping(session, registers);  // This was the last one.
  LookAhead(session, registers);
}

}  // namespace

PERFKIT_IN_HANDLER bool OnStep(void* self, const siginfo_t& info, ucontext_t& registers) {
  Session& session = *static_cast<Session*>(self);
  const bool step = IsStep(session, info, registers);
  if (session.maybe_other) {
    if (session.ask_thread() != session.thread) {
      if (step) StopStepping(session, registers);  // A child of the region: it is not counted.
      return step;
    }
    session.maybe_other = false;
  }
  if (!step && !HasTrapFlag(registers)) {  // In a signal handler: stepping ends when that returns.
    session.ending = Ending::kForeignTrap;
    return false;
  }
  if (!step)
    GiveUp(session, registers, Ending::kForeignTrap);
  else if (session.ending != Ending::kNone)
    EndStepping(session, registers);
  else
    CountStep(session, registers);
  return step;
}

// Not inlined, so that these instructions are the same for every region, and are subtracted.
[[gnu::noinline]] void RunUnderTrapFlag(Session& session, void (*region)(void*), void* argument) {
  std::atomic_signal_fence(std::memory_order_seq_cst);  // The handler uses the session from here on.
  __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | kTrapFlag);
  region(argument);
  const bool lost = (__builtin_ia32_readeflags_u64() & kTrapFlag) == 0;
  __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() & ~kTrapFlag);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (lost && session.ending == Ending::kNone) session.ending = Ending::kFlagLost;
}

}  // namespace perfkit::step

#endif
