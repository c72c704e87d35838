// Counts from getrusage and the thread's CPU clock, for processes that may not use perf at all.
#pragma once

#include <cstdint>
#include <optional>

namespace perfkit::count {

// The events that the kernel always counts for each thread.
enum class UsageField : uint8_t { kTaskClock, kPageFaults, kMinorFaults, kMajorFaults, kContextSwitches };

// Returns the field of a software event (perf_event_attr.config of kTypeSoftware); nullopt for others.
std::optional<UsageField> UsageFieldFor(uint64_t software_config);

// A set of fields, as bits by their numbers.
using UsageFields = uint32_t;
constexpr UsageFields BitOf(UsageField field) { return 1u << static_cast<int>(field); }
inline constexpr UsageFields kAllUsageFields = (1u << 5) - 1;

// Fields of the calling thread's usage: the clock takes one system call, all others together take another one.
class Usage {
 public:
  // Reads at least the given fields. Returns false if the kernel refused (a sandbox): then no field has a value.
  bool Read(UsageFields fields = kAllUsageFields) noexcept;

  // Returns a field that was read: nanoseconds for the clock (without stolen time, unlike perf's task-clock), events
  // for the others. Page faults include those that the kernel takes on the thread's behalf.
  uint64_t value(UsageField field) const noexcept { return values_[static_cast<int>(field)]; }

 private:
  uint64_t values_[5] = {};
};

}  // namespace perfkit::count
