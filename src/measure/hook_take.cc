// Counts allocations by the wrapped malloc of perfkit::testing_alloc, if the program links it. The count is a word of
// each thread, found by a weak symbol (src/sys/allocations.h): reading it is a load, and allocates nothing.
#include "src/measure/take.h"
#include "src/sys/allocations.h"

namespace perfkit::measure {

absl::StatusOr<Take> OpenHookTake(const EventType& event) {
  if (!IsAllocations(event) && !IsAllocatedBytes(event)) {
    return absl::Status(absl::StatusCode::kUnavailable, "the wrapped malloc counts allocations and their bytes only");
  }
  const auto word = IsAllocations(event) ? sys::ThreadAllocations : sys::ThreadAllocatedBytes;
  if (word() == nullptr) {
    return absl::Status(absl::StatusCode::kUnavailable, "this program does not link perfkit::testing_alloc");
  }
  const auto take = [word](Body body, void* self) -> absl::StatusOr<int64_t> {
    const uint64_t before = *word();
    body(self);
    // Looked up again: if the body ends on another thread (which the caller refuses), the first thread's count may be
    // gone.
    return static_cast<int64_t>(*word() - before);
  };
  return Take{.take = take, .read_path = "wrapped malloc", .event_class = EventClass::kExact};
}

}  // namespace perfkit::measure
