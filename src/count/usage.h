// Counts from getrusage and the thread's CPU clock: what is left where perf is not permitted at all.
#pragma once

#include <cstdint>
#include <optional>

namespace perfkit::count {

// The events that the kernel keeps for every thread anyway.
enum class UsageField : uint8_t { kTaskClock, kPageFaults, kMinorFaults, kMajorFaults, kContextSwitches };

// Which field stands for a software event (perf_event_attr.config of kTypeSoftware); nothing for the others.
std::optional<UsageField> UsageFieldFor(uint64_t software_config);

// The calling thread's usage, all fields at once: two system calls at most.
class Usage {
 public:
  // Reads now. False when the kernel refused (a sandbox): no field has a value then.
  bool Read() noexcept;

  // Nanoseconds for the clock (steal excluded, unlike perf's task-clock), events for the others. Page faults include
  // those that the kernel takes on the thread's behalf.
  uint64_t value(UsageField field) const noexcept { return values_[static_cast<int>(field)]; }

 private:
  uint64_t values_[5] = {};
};

}  // namespace perfkit::count
