// The backends of Measure: each takes one repetition of a region and says what one event counted in it.
//
//   BackendsFor(event)          in which order backends are tried
//   OpenTake(backend, event)    a Take that is proven on work of known cost, or why there is none
#pragma once

#include <functional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "perfkit/measure.h"

namespace perfkit::measure {

using Body = void (*)(void* self);

// What the event counted while `body(self)` ran, everything around it included. A Status: no number, and there will be
// none with this backend.
using TakeFn = std::function<absl::StatusOr<int64_t>(Body body, void* self)>;

struct Take {
  TakeFn take;
  std::string read_path;  // for people: "perf, ring"
  EventClass event_class;
  bool once = false;  // a repetition is dear, and each is the same
};

std::span<const MeasureBackend> BackendsFor(const EventType& event);
std::string_view BackendName(MeasureBackend backend);

// Unavailable, PermissionDenied and others: the reason that a Cost shows.
absl::StatusOr<Take> OpenTake(MeasureBackend backend, const EventType& event, const MeasureOptions& options);

// The three of them, unproven: counter_take.cc, hook_take.cc, step_take.cc.
absl::StatusOr<Take> OpenCounterTake(const EventType& event);
absl::StatusOr<Take> OpenHookTake(const EventType& event);
absl::StatusOr<Take> OpenStepTake(const EventType& event, const MeasureOptions& options);

// The functions whose calls are allocations.
inline constexpr const char* kAllocators[] = {"malloc",   "calloc",        "realloc",
                                              "memalign", "aligned_alloc", "posix_memalign"};

// Which kMeasuredType event it is.
inline bool IsAllocations(const EventType& event) { return event == event::kAllocations; }
inline bool IsSyscalls(const EventType& event) { return event == event::kSyscalls; }
inline bool IsCalls(const EventType& event) { return event.type == kMeasuredType && event.config == 3; }

}  // namespace perfkit::measure
