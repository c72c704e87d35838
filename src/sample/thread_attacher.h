// Opens a sampler's events on threads: on all that exist, or on one that has started since.
//
// An event is opened on a thread with all others or not at all. What else an error leaves (rings, the thread in the
// DuplicateFilter, a newcomer's events) is removed when the caller takes the thread for one that has ended.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "src/sample/duplicate_filter.h"
#include "src/sample/sampler_rings.h"

namespace perfkit::sample {

// Returns the threads of the target from /proc, or {kShared} for whole CPUs.
absl::StatusOr<std::vector<pid_t>> ThreadsNow(const Plan& plan);

// Not thread-safe. In all functions `tracking` means with the side band; otherwise only threads that have rings are
// attached, and the side band stays as it is.
class ThreadAttacher {
 public:
  // The arguments must outlive the attacher.
  ThreadAttacher(const Plan& plan, SamplerRings& rings, DuplicateFilter& duplicates)
      : plan_(plan), rings_(rings), duplicates_(duplicates) {}

  // Attaches all threads of the target that are not attached. Later threads inherit the events if plan.inherits().
  // Errors: Aborted if threads keep starting; NotFound if the only thread has ended; else those of opening.
  absl::Status AttachAll(const SamplingLevel& level, bool tracking);
  // Opens the events of one thread, and rings for it if it has none. Errors: NotFound if the thread has ended.
  absl::Status Attach(pid_t tid, const SamplingLevel& level, bool tracking);
  // As above, for a thread that has started while the sampler was running, and enables the events. `paused`: rings are
  // paused. On an error some events may be open.
  absl::Status AttachNewcomer(pid_t tid, const SamplingLevel& level, bool paused);
  // Returns an error that says how many descriptors were needed, if `status` is that there are too few.
  absl::Status ExplainDescriptors(const absl::Status& status, size_t threads, size_t cpus) const;

 private:
  // Attaches the threads that are not attached. Sets `any` if there were some. `late`: threads that are found now have
  // started while others were being attached.
  absl::Status AttachRound(const SamplingLevel& level, bool tracking, bool late, bool& any);
  absl::Status AttachToRingSets(pid_t tid, const SamplingLevel& level, bool tracking);

  const Plan& plan_;
  SamplerRings& rings_;
  DuplicateFilter& duplicates_;
};

}  // namespace perfkit::sample
