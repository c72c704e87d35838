// Counts the user instructions of a region exactly, with no PMU and no right: the CPU's trap flag stops after each one.
//
//   auto stepper = perfkit::step::Stepper::Open();
//   auto count = stepper->Run([](void* table) { static_cast<Table*>(table)->find(42); }, &table);
//   count->instructions                                            // the same number each time
//
// x86-64 only. Each instruction costs a signal (2 to 17 us, by the machine), so this is for tests, not for programs
// that run.
//
// What is counted: the instructions that this thread executes in user space between the region's first and its return,
// beyond those of an empty region. A `rep` string instruction counts once, as PMUs count it; the kernel's work, signal
// handlers that run meanwhile, and other threads do not count.
//
// Your responsibilities: the region must return (catch what it throws inside it; no longjmp out of it), must not clear
// the trap flag, install a handler for SIGTRAP, get a SIGTRAP of another kind (a breakpoint), or start a thread. When
// one of these last happens there is no number, and the Status says so. Code that reads EFLAGS (pushf) sees the flag
// set.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"

namespace perfkit::step {

// Addresses that one run can watch, at most.
inline constexpr size_t kMaxWatched = 8;

// What a region did. All numbers are exact.
struct StepCount {
  uint64_t instructions = 0;                   // `rep` counted once, an empty region's subtracted
  uint64_t rounds = 0;                         // of `rep`, beyond the first of each
  uint64_t system_calls = 0;                   // `syscall` instructions; what the vDSO answers is none
  std::array<uint64_t, kMaxWatched> visits{};  // how often each watched address was executed
};

struct StepOptions {
  // Steps, rounds of `rep` included, after which the region runs on unwatched, and has no number.
  uint64_t budget = 200'000;
  // CPU time of the thread, in nanoseconds, after which the same happens; 0: no limit. Time that the thread sleeps or
  // waits for a CPU is none.
  uint64_t cpu_limit_ns = 10'000'000'000;
  // Addresses of instructions (functions' entries) whose executions are counted: kMaxWatched at most.
  std::span<const uintptr_t> watch = {};
};

// Steps the thread that calls Run. A small value; one for each thread, or one for all.
class Stepper {
 public:
  // Proves that stepping works here, and measures what an empty region costs.
  // Unavailable: another architecture, or something that does not honour the trap flag (valgrind, an emulator).
  static absl::StatusOr<Stepper> Open();

  // Runs `region(argument)` once, instruction by instruction.
  // ResourceExhausted: over the budget, or the limit of CPU time. FailedPrecondition: a debugger is attached (it would
  // take every trap), or the region broke its duties. The region has run to its end in all cases but those that the
  // debugger forbids.
  absl::StatusOr<StepCount> Run(void (*region)(void*), void* argument, const StepOptions& options = {}) const;

  // Instructions of an empty region (call, return and the setting of the flag), which Run has subtracted.
  uint64_t constant() const { return constant_; }
  // Whether a system call swallows its own trap here, which is then made up for (Linux without FRED: it does).
  bool swallows_system_calls() const { return swallowed_ != 0; }

 private:
  Stepper() = default;
  uint64_t constant_ = 0;
  uint64_t swallowed_ = 0;
};

}  // namespace perfkit::step
