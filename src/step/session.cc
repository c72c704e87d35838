// The trap handler of the stepper. Everything here runs inside a signal handler, except RunUnderTrapFlag.
#include "src/step/session.h"

#if defined(__x86_64__)

#include <atomic>

#include "src/step/x86_64.h"

namespace perfkit::step {
namespace {

constexpr uint64_t kTrapBit = uint64_t{1} << (SIGTRAP - 1);
constexpr uint64_t kNeverBlocked = uint64_t{1} << (SIGKILL - 1) | uint64_t{1} << (SIGSTOP - 1);
constexpr uint64_t kKernelHalf = uint64_t{1} << 63;  // vsyscall: its page may be executed but not read

using Registers = greg_t*;

PERFKIT_IN_HANDLER void StopStepping(Registers at) { at[REG_EFL] &= ~static_cast<greg_t>(kTrapFlag); }

PERFKIT_IN_HANDLER void GiveUp(Session& session, Registers at, Ending why) {
  session.ending = why;
  StopStepping(at);
}

// rt_sigprocmask(how, set, before, size), as the kernel would do it, but SIGTRAP stays open whatever is asked. The
// thread's mask is the one that this handler returns to. False: let the kernel do it (and refuse it).
PERFKIT_IN_HANDLER bool ChangeMask(Session& session, ucontext_t& registers) {
  const Registers at = registers.uc_mcontext.gregs;
  if (at[REG_R10] != sizeof(uint64_t) || at[REG_RDI] < SIG_BLOCK || at[REG_RDI] > SIG_SETMASK) return false;
  auto& mask = *reinterpret_cast<uint64_t*>(&registers.uc_sigmask);
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
  at[REG_RCX] = at[REG_RIP] + kSystemCallSize;  // as `syscall` leaves them
  at[REG_R11] = at[REG_EFL];
  at[REG_RIP] += kSystemCallSize;
  return true;
}

// A child starts with its parent's flags. A thread has no session and traps once; a process shares this session, or has
// a copy of it, and is told apart by its thread id.
PERFKIT_IN_HANDLER void PrepareClone(Session& session, Registers at) {
  uint64_t flags = 0;
  if (at[REG_RAX] == number::kClone) flags = static_cast<uint64_t>(at[REG_RDI]);
  if (at[REG_RAX] == number::kClone3) flags = *reinterpret_cast<const uint64_t*>(at[REG_RDI]);
  if ((flags & kClearHandlers) != 0) return GiveUp(session, at, Ending::kBareProcess);
  if ((flags & kSetThreadStorage) != 0) return sys::ExpectTrapOfNewThread();
  session.maybe_other = true;
}

// Before a system call. True when it was done here, and the next instruction is another.
PERFKIT_IN_HANDLER bool PrepareSystemCall(Session& session, ucontext_t& registers) {
  const Registers at = registers.uc_mcontext.gregs;
  switch (at[REG_RAX]) {
    case number::kRtSigprocmask: return ChangeMask(session, registers);
    case number::kRtSigaction:
      if (at[REG_RDI] == SIGTRAP && at[REG_RSI] != 0) GiveUp(session, at, Ending::kHandler);
      return false;
    case number::kClone:
    case number::kClone3:
    case number::kFork:
    case number::kVfork: PrepareClone(session, at); return false;
    default: return false;
  }
}

// Looks at the instruction that comes next, and on past those that are done here.
PERFKIT_IN_HANDLER void LookAhead(Session& session, ucontext_t& registers) {
  const Registers at = registers.uc_mcontext.gregs;
  while (true) {
    const auto next = static_cast<uintptr_t>(at[REG_RIP]);
    session.last = next;
    for (size_t i = 0; i < session.watched; ++i) session.visits[i] += session.watch[i] == next;
    if (next >= kKernelHalf || !IsSystemCall(reinterpret_cast<const uint8_t*>(next))) return;
    ++session.count.system_calls;
    if (!PrepareSystemCall(session, registers)) {
      session.count.instructions += session.swallowed;
      if (session.swallowed != 0) session.last = next + kSystemCallSize;  // the next trap is of what stands behind it
      return;
    }
    ++session.count.instructions;
  }
}

}  // namespace

PERFKIT_IN_HANDLER bool OnStep(void* self, const siginfo_t& info, ucontext_t& registers) {
  if (info.si_code != TRAP_TRACE) return false;
  Session& session = *static_cast<Session*>(self);
  const Registers at = registers.uc_mcontext.gregs;
  if (session.maybe_other) {
    if (session.ask_thread() != session.thread) {
      StopStepping(at);  // a child of the region: it is not counted
      return true;
    }
    session.maybe_other = false;
  }
  if (session.budget-- == 0) {
    GiveUp(session, at, Ending::kBudget);
    return true;
  }
  const auto next = static_cast<uintptr_t>(at[REG_RIP]);
  if (next == session.last && next < kKernelHalf && IsRepeated(reinterpret_cast<const uint8_t*>(next))) {
    ++session.count.rounds;
    return true;
  }
  ++session.count.instructions;
  LookAhead(session, registers);
  return true;
}

// Not inlined: these are the same instructions for every region, and so subtract out.
[[gnu::noinline]] void RunUnderTrapFlag(Session& session, void (*region)(void*), void* argument) {
  std::atomic_signal_fence(std::memory_order_seq_cst);  // the session is the handler's from here on
  __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | kTrapFlag);
  region(argument);
  const bool lost = (__builtin_ia32_readeflags_u64() & kTrapFlag) == 0;
  __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() & ~kTrapFlag);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (lost && session.ending == Ending::kNone) session.ending = Ending::kFlagLost;
}

}  // namespace perfkit::step

#endif
