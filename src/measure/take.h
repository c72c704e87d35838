// The backends of Measure. Each runs one repetition of a region and returns the count of one event.
//
//   BackendsFor(event)         returns the backends in the order in which they are tried
//   OpenTake(backend, event)   returns a Take that has passed a test on work of known cost, or why there is none
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "perfkit/measure.h"

namespace perfkit::measure {

using Body = void (*)(void* self);

// Returns the count of the event while `body(self)` ran, including the wrapper around it. After an error this backend
// will not return any number.
using TakeFn = std::function<absl::StatusOr<int64_t>(Body body, void* self)>;

struct Take {
  TakeFn take;
  std::string read_path;  // For messages: "perf, ring".
  EventClass event_class;
  bool user_only = false;  // As Cost::user_only.
  bool once = false;       // One repetition is enough: each takes long, and all have the same result.
};

std::span<const MeasureBackend> BackendsFor(const EventType& event);
std::string_view BackendName(MeasureBackend backend);

// Errors: Unavailable, PermissionDenied and others, as Cost::unmeasurable shows them.
absl::StatusOr<Take> OpenTake(MeasureBackend backend, const EventType& event, const MeasureOptions& options);

// The three backends without the test: counter_take.cc, hook_take.cc, step_take.cc.
absl::StatusOr<Take> OpenCounterTake(const EventType& event);
absl::StatusOr<Take> OpenHookTake(const EventType& event);
absl::StatusOr<Take> OpenStepTake(const EventType& event, const MeasureOptions& options);

// A function whose calls are allocations.
struct AllocatorEntry {
  const char* name;
  const void* code;  // The address by which calls arrive: the program's own malloc, if it has one, not libc's.
};

// Returns the entries of the allocator in this process. Each address is there once, or its calls would count twice:
// glibc's memalign and aligned_alloc are one. A function that this process lacks has `code` nullptr.
std::vector<AllocatorEntry> AllocatorEntries();

// Returns a path of the loaded file that has this code; "" if none has it.
std::string FileOfCode(const void* code);

// Return true for kAllocations, kAllocatedBytes, kSyscalls, and CallsEvents, which perf does not have.
inline bool IsAllocations(const EventType& event) { return event == event::kAllocations; }
inline bool IsAllocatedBytes(const EventType& event) { return event == event::kAllocatedBytes; }
inline bool IsSyscalls(const EventType& event) { return event == event::kSyscalls; }
inline bool IsCalls(const EventType& event) { return event.type == kMeasuredType && event.config == 3; }

}  // namespace perfkit::measure
