// Runs a handler after each instruction of a piece of code, so that it meets each half-changed state. Random signals
// rarely come between two instructions that are next to each other.
#pragma once

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "tests/support/work.h"

namespace perfkit::testing {

#if defined(__x86_64__)
inline constexpr bool kHasSingleSteps = !kHandlersUnseen;
#else
inline constexpr bool kHasSingleSteps = false;
#endif

// Why there are none.
inline constexpr const char* kNoSingleSteps = kHandlersUnseen ? "ThreadSanitizer delays signals" : "x86-64 only";

// Handles SIGTRAP during its lifetime. Only one may exist at a time.
class SingleSteps {
 public:
  // `at_step` runs in a handler after each instruction of Over, and returns true for another step. It may also leave by
  // siglongjmp, which ends the steps.
  explicit SingleSteps(bool (*at_step)()) {
    at_step_ = at_step;
    struct sigaction action {};
    action.sa_sigaction = [](int, siginfo_t*, void* context) { Handle(*static_cast<ucontext_t*>(context)); };
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &action, &before_);
  }
  ~SingleSteps() { sigaction(SIGTRAP, &before_, nullptr); }
  SingleSteps(const SingleSteps&) = delete;
  SingleSteps& operator=(const SingleSteps&) = delete;

  // Runs `body`; in single steps if kHasSingleSteps.
  template <class Body>
  static void Over(Body&& body) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
#if defined(__x86_64__)
    __writeeflags(__readeflags() | kTrapFlag);
    body();
    __writeeflags(__readeflags() & ~kTrapFlag);
#else
    body();
#endif
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }

 private:
  static void Handle([[maybe_unused]] ucontext_t& context) {
    const int error = errno;
    const bool goes_on = at_step_();
    errno = error;
#if defined(__x86_64__)
    if (!goes_on) context.uc_mcontext.gregs[REG_EFL] &= ~static_cast<greg_t>(kTrapFlag);
#else
    (void)goes_on;
#endif
  }

  static constexpr uint64_t kTrapFlag = 0x100;  // EFLAGS.TF: SIGTRAP after each instruction

  static inline bool (*at_step_)() = nullptr;
  struct sigaction before_ {};
};

// Runs `body`, and runs `work` in a handler once `body` has executed that many instructions (at least 1). Does not run
// `work` if `body` has fewer.
template <class Work, class Body>
void InterruptAt(uint32_t instructions, Work&& work, Body&& body) {
  static volatile uint32_t left;
  static std::remove_reference_t<Work>* due;
  left = instructions;
  due = &work;
  const SingleSteps steps([] {
    left = left - 1;
    if (left > 0) return true;
    (*due)();
    return false;
  });
  SingleSteps::Over(body);
}

// Runs `body`, but leaves it by a jump after that many instructions; 0: does not leave it. Returns false if it was over
// before.
template <class Body>
bool LeaveAt(uint32_t instructions, Body&& body) {
  static volatile uint32_t left;
  static sigjmp_buf out;
  left = instructions;
  const SingleSteps steps([] {
    if (left == 0) return false;
    left = left - 1;
    if (left == 0) siglongjmp(out, 1);
    return true;
  });
  if (sigsetjmp(out, 1) != 0) return true;
  SingleSteps::Over(body);
  return false;
}

}  // namespace perfkit::testing
