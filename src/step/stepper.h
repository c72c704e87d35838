// Counts the user instructions of a region exactly, with no PMU and no right: the CPU's trap flag stops after each one.
//
//   auto stepper = perfkit::step::Stepper::Open();
//   auto count = stepper->Run([](void* table) { static_cast<Table*>(table)->find(42); }, &table);
//   count->instructions                                            // the same number each time
//
// x86-64 only. Each instruction costs a signal (2 to 17 us, by the machine), so this is for tests.
//
// The count includes the instructions that this thread executes in user space from the region's first to its return,
// minus those of an empty region. A `rep` string instruction counts once, as PMUs count it. The kernel's work, signal
// handlers that run meanwhile, and other threads do not count.
//
// The region must return: it must catch what it throws, and must not longjmp out. It must not clear the trap flag,
// install a handler for SIGTRAP, get a SIGTRAP of another kind (a breakpoint), or start a thread; if it does, there is
// no number, and the Status says why. Code that reads EFLAGS (pushf) sees the flag set.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"

namespace perfkit::step {

// Maximum number of addresses that one run can watch.
inline constexpr size_t kMaxWatched = 8;

// The counts of a region. All are exact.
struct StepCount {
  uint64_t instructions = 0;                   // `rep` counts once; an empty region's are subtracted.
  uint64_t rounds = 0;                         // Rounds of `rep`, beyond the first of each.
  uint64_t system_calls = 0;                   // `syscall` instructions; calls that the vDSO answers are none.
  std::array<uint64_t, kMaxWatched> visits{};  // Number of executions of each watched address.
};

struct StepOptions {
  // Maximum steps, rounds of `rep` included. Beyond it the region runs on without stepping, and has no number.
  uint64_t budget = 200'000;
  // Maximum CPU time of the thread in nanoseconds, with the same consequence; 0 means no limit. Time in which the
  // thread sleeps or waits for a CPU does not count.
  uint64_t cpu_limit_ns = 10'000'000'000;
  // Addresses of instructions (functions' entries) whose executions are counted: at most kMaxWatched.
  std::span<const uintptr_t> watch = {};
};

// Steps regions on the thread that calls Run. A small value; thread-safe.
class Stepper {
 public:
  // Proves that stepping works here, and measures the cost of an empty region. Errors: Unavailable on another
  // architecture, or if something does not honour the trap flag in each case (valgrind, QEMU without KVM).
  static absl::StatusOr<Stepper> Open();

  // Runs `region(argument)` once, instruction by instruction. Errors: ResourceExhausted beyond the budget or the limit
  // of CPU time; FailedPrecondition if a debugger is attached (it would take each trap), if this thread has an
  // alternate signal stack of less than 4 to 5 KiB, or if the region did what it must not do. The region has run to its
  // end in the last case, and beyond the budget and the limit.
  absl::StatusOr<StepCount> Run(void (*region)(void*), void* argument, const StepOptions& options = {}) const;

  // Returns the instructions of an empty region (call, return and the setting of the flag), which Run subtracts.
  uint64_t constant() const { return constant_; }
  // Returns true if a system call swallows its own trap here, which Run corrects (Linux without FRED does).
  bool swallows_system_calls() const { return swallowed_ != 0; }

 private:
  Stepper() = default;
  uint64_t constant_ = 0;
  uint64_t swallowed_ = 0;
  bool executes_cpuid_ = false;  // A hypervisor that emulates cpuid may lose its trap.
};

}  // namespace perfkit::step
