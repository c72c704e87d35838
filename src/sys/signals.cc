// The one handler of SIGTRAP: a fixed table of claims, one for each thread that expects traps, and the chain of the
// handlers that were installed before. The table is read in a signal handler, so it is plain memory that is never
// freed. A slot belongs to one thread, whose handler runs on that thread; a slot is published by writing its thread
// last. A handler is installed once and stays: a trap may be under way on any thread.
#include "src/sys/signals.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <sys/auxv.h>

#include <algorithm>
#include <cstdint>

#include "src/sys/kernel.h"
#include "src/sys/sample_signals.h"

namespace perfkit::sys {

// Belongs to one thread while `thread` names it. The handler runs on that thread too, so the compiler's order of
// accesses suffices: `thread` is written last.
struct TrapClaim::Slot {
  uintptr_t thread;  // ThisThread(); 0 means free, 1 means being filled.
  TrapHandler handler;
  void* self;
};

namespace {

constexpr uintptr_t kNobody = 0, kBeingFilled = 1;

struct SignalTable {
  TrapClaim::Slot slots[64];
  // Handlers that were found installed, oldest first. Each entry is written once, before `previous` points to it.
  struct sigaction found[8];
  int found_count;
  const struct sigaction*
      previous;          // Called for traps without a claim; nullptr means that the handler is not installed.
  const void* chained;   // Registers of the trap that was last passed on.
  pthread_mutex_t lock;  // Held while the handler is installed.
};
constinit SignalTable g_signals{.slots = {},
                                .found = {},
                                .found_count = 0,
                                .previous = nullptr,
                                .chained = nullptr,
                                .lock = PTHREAD_MUTEX_INITIALIZER};

// Identifies a living thread by its control block: one instruction, and safe in a handler on a thread that is starting.
PERFKIT_IN_HANDLER uintptr_t ThisThread() { return reinterpret_cast<uintptr_t>(__builtin_thread_pointer()); }

// Clears the trap flag after a single step without a claim. Returns false if the trap was no step. A step may arrive as
// TRAP_BRKPT (src/step/session.cc says why); then the flag tells it from a breakpoint.
PERFKIT_IN_HANDLER bool EndLeftoverStep([[maybe_unused]] const siginfo_t& info,
                                        [[maybe_unused]] ucontext_t& registers) {
#if defined(__x86_64__)
  constexpr greg_t kTrapFlag = 0x100;  // EFLAGS.TF (Intel SDM vol. 1, 3.4.3)
  greg_t& flags = registers.uc_mcontext.gregs[REG_EFL];
  const bool stepping = (flags & kTrapFlag) != 0;
  if (info.si_code != TRAP_TRACE && !(info.si_code == TRAP_BRKPT && stepping)) return false;
  flags &= ~kTrapFlag;
  return true;
#else
  return false;
#endif
}

// Does what the kernel would do without a handler. A step without a claim is left over from an ended one, and stops
// here.
PERFKIT_IN_HANDLER void ActAsDefault(int signal, const siginfo_t& info, ucontext_t& registers, bool ignored) {
  if (ignored && info.si_code <= 0) return;  // A process sent it. Traps that the CPU raises can't be ignored.
  if (EndLeftoverStep(info, registers)) return;
  struct sigaction act {};
  act.sa_handler = SIG_DFL;
  kernel().sigaction(signal, &act, nullptr);
  ::raise(signal);  // It is blocked here, and ends the process when this handler returns.
}

PERFKIT_IN_HANDLER void HandOn(int signal, siginfo_t* info, void* registers) {
  const struct sigaction* next = __atomic_load_n(&g_signals.previous, __ATOMIC_ACQUIRE);
  // Two owners may each have the other as "previous": after one round the trap goes to the oldest handler.
  if (__atomic_exchange_n(&g_signals.chained, registers, __ATOMIC_RELAXED) == registers) next = &g_signals.found[0];
  if ((next->sa_flags & SA_SIGINFO) != 0) {
    next->sa_sigaction(signal, info, registers);
  } else if (next->sa_handler != SIG_DFL && next->sa_handler != SIG_IGN) {
    next->sa_handler(signal);
  } else {
    ActAsDefault(signal, *info, *static_cast<ucontext_t*>(registers), next->sa_handler == SIG_IGN);
  }
  __atomic_store_n(&g_signals.chained, nullptr, __ATOMIC_RELAXED);
}

PERFKIT_IN_HANDLER void OnTrap(int signal, siginfo_t* info, void* context) {
  ucontext_t& registers = *static_cast<ucontext_t*>(context);
  const int error = errno;
  if (TakeSampleSignal(*info, registers)) {
    errno = error;
    return;
  }
  const uintptr_t thread = ThisThread();
  for (TrapClaim::Slot& slot : g_signals.slots) {
    if (__atomic_load_n(&slot.thread, __ATOMIC_RELAXED) == thread && slot.handler(slot.self, *info, registers)) return;
  }
  HandOn(signal, info, context);
  errno = error;
}

// Pins the library that contains the handler, so that dlclose does not unmap it: the handler must outlive every trap.
void PinThisLibrary() {
  Dl_info self{};
  link_map* map = nullptr;
  void** const out = reinterpret_cast<void**>(&map);
  if (::dladdr1(reinterpret_cast<void*>(&OnTrap), &self, out, RTLD_DL_LINKMAP) == 0 || map == nullptr) return;
  // A program has the name "", and is never unloaded.
  if (map->l_name[0] != '\0') ::dlopen(map->l_name, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

bool SameHandler(const struct sigaction& a, const struct sigaction& b) {
  return a.sa_sigaction == b.sa_sigaction && (a.sa_flags & SA_SIGINFO) == (b.sa_flags & SA_SIGINFO);
}

// Returns the entry of `before` in `found`, new or existing. Returns nullptr after eight different handlers.
const struct sigaction* Remember(const struct sigaction& before) {
  for (int i = 0; i < g_signals.found_count; ++i) {
    if (SameHandler(g_signals.found[i], before)) return &g_signals.found[i];
  }
  if (g_signals.found_count == 8) return nullptr;
  g_signals.found[g_signals.found_count] = before;
  return &g_signals.found[g_signals.found_count++];
}

absl::Status SignalError(int error) { return absl::ErrnoToStatus(error, "cannot install a handler for SIGTRAP"); }

absl::Status InstallLocked() {
  struct sigaction now {};
  if (kernel().sigaction(SIGTRAP, nullptr, &now) != 0) return SignalError(errno);
  struct sigaction ours {};
  ours.sa_sigaction = OnTrap;
  // SA_ONSTACK: on a thread with an alternate stack, stepping uses none of its own stack. No SA_RESTART: traps
  // interrupt no call.
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigfillset(&ours.sa_mask);
  if (SameHandler(now, ours)) return absl::OkStatus();
  const struct sigaction* const before = Remember(now);
  if (before == nullptr) {
    return absl::Status(absl::StatusCode::kResourceExhausted,
                        "SIGTRAP: eight other handlers have replaced perfkit's; it does not replace the ninth");
  }
  PinThisLibrary();
  // Release pairs with the acquire in HandOn: a thread that runs this handler sees the previous one.
  __atomic_store_n(&g_signals.previous, before, __ATOMIC_RELEASE);
  if (kernel().sigaction(SIGTRAP, &ours, nullptr) != 0) return SignalError(errno);
  return absl::OkStatus();
}

// A signal whose frame does not fit on the thread's alternate stack ends the process by SIGSEGV (arch/x86/kernel/signal.c,
// get_sigframe). Debian's glibc still calls 2,048 bytes enough (MINSIGSTKSZ); a frame with AVX-512 takes 3,376.
bool HasRoomForHandler() {
  stack_t stack{};
  if (::sigaltstack(nullptr, &stack) != 0 || (stack.ss_flags & (SS_DISABLE | SS_ONSTACK)) != 0) return true;
  constexpr uint64_t kHandlers = 1024;
  // The largest frame, as the kernel says; 0 if it is older than 5.14. A frame of more than 4 KiB has AMX's registers,
  // and the kernel permits those only to threads with a larger stack (arch/x86/kernel/fpu/xstate.c, validate_sigaltstack).
  const uint64_t frame = std::clamp<uint64_t>(::getauxval(AT_MINSIGSTKSZ), 2048, 4096);
  return stack.ss_size >= frame + kHandlers;
}

TrapClaim::Slot* TakeSlot() {
  for (TrapClaim::Slot& slot : g_signals.slots) {
    uintptr_t expected = kNobody;
    // Acquire pairs with the release in ~TrapClaim: the last owner has finished with the slot.
    if (__atomic_compare_exchange_n(&slot.thread, &expected, kBeingFilled, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
      return &slot;
    }
  }
  return nullptr;
}

}  // namespace

absl::Status InstallTrapHandler() {
  pthread_mutex_lock(&g_signals.lock);
  absl::Status installed = InstallLocked();
  pthread_mutex_unlock(&g_signals.lock);
  return installed;
}

absl::StatusOr<TrapClaim> TrapClaim::OfThisThread(TrapHandler handler, void* self) {
  if (!HasRoomForHandler()) {
    return absl::Status(absl::StatusCode::kFailedPrecondition,
                        "SIGTRAP: this thread's alternate signal stack is too small for a handler. Remedy: give "
                        "sigaltstack 8 KiB or more");
  }
  if (absl::Status installed = InstallTrapHandler(); !installed.ok()) return installed;
  Slot* const slot = TakeSlot();
  if (slot == nullptr) {
    return absl::Status(absl::StatusCode::kResourceExhausted, "SIGTRAP: 64 threads have claimed it already");
  }
  slot->handler = handler;
  slot->self = self;
  __atomic_signal_fence(__ATOMIC_RELEASE);
  __atomic_store_n(&slot->thread, ThisThread(), __ATOMIC_RELAXED);
  return TrapClaim(slot);
}

TrapClaim::~TrapClaim() {
  if (slot_ == nullptr) return;
  // Release pairs with the acquire in TakeSlot.
  __atomic_store_n(&slot_->thread, kNobody, __ATOMIC_RELEASE);
}

}  // namespace perfkit::sys
