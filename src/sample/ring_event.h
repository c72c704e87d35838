// One perf event of a sampler: event `event` (or a dummy for other records) of thread `tid` on one CPU, with its
// followers.
//
// A sampler of T threads on C CPUs with E events has T x C x (E + 1) of them: their accounting is summed by event.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "perfkit/sampler_record.h"
#include "src/open/output_ring.h"
#include "src/open/task_cpu.h"
#include "src/sample/plan.h"
#include "src/sample/signal_switches.h"

namespace perfkit::sample {

// The result of read(2) on an event.
struct EventCount {
  uint64_t value = 0;
  uint64_t lost = 0;
};

struct RingEvent {
  static constexpr uint32_t kTracking = SamplerRecord::kNoEvent;

  SignallingFd fd;
  std::vector<sys::OwnedFd> followers;  // Declared after `fd`: closed before their leader.
  uint64_t id = 0;
  uint32_t event = kTracking;
  int tid = -1;  // The thread it was opened on; threads that inherit it write with its id.
  int cpu = -1;  // The only CPU that it counts on; -1 means any.
  bool user_only = false;
  bool pausable = false;      // A tracking event that writes into a ring of samples, which Sampler::Pause pauses.
  uint64_t lost_settled = 0;  // Losses that are already in the accounting.
  EventCount known;           // Result of the last successful Read.
  EventCount taken;           // `known` when its overwriting ring was last read.
  bool stuck = false;         // Should be enabled, but could not be.
  bool hung_up = false;       // Its thread has ended, and all threads that inherited it: RingSet::FirstLiving.

  // Returns nullopt if the event is in error state. Retries after EINTR.
  std::optional<EventCount> Read(const SampleLayout& layout);
  absl::Status Switch(unsigned long request) const;
  // Closes the descriptors in a forked child.
  void OnForkedChild() {
    for (sys::OwnedFd& follower : followers) follower.Reset();
    fd.Reset();
  }
};

// Opens event `event` at `task_cpu`, disabled, with its followers, and redirects its output to `ring`.
absl::StatusOr<RingEvent> OpenRingEvent(const Plan& plan, const SamplingLevel& level, uint32_t event, size_t part,
                                        const open::TaskCpu& task_cpu, const open::OutputRing& ring);
// Returns InvalidArgument if event `event` and its followers can never be on the PMU together.
absl::Status CheckFits(const Plan& plan, uint32_t event);
// As OpenRingEvent, for a tracking event: Plan::TrackingRequest or SwitchesRequest.
absl::StatusOr<RingEvent> OpenTrackingEvent(const Plan& plan, open::OpenRequest request, const open::TaskCpu& task_cpu,
                                            const open::OutputRing& ring);

}  // namespace perfkit::sample
