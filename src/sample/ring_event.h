// One perf event of a sampler: event `event` (or a dummy for other records) of thread `tid` on one CPU, with its
// followers.
//
// A sampler of T threads on C CPUs with E events has T x C x (E + 1) of them: their accounting is summed by event.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "src/open/output_ring.h"
#include "src/open/task_cpu.h"
#include "src/sample/plan.h"

namespace perfkit::sample {

// What read(2) says of an event.
struct EventCount {
  uint64_t value = 0;
  uint64_t lost = 0;
};

struct RingEvent {
  static constexpr uint32_t kTracking = SamplerRecord::kNoEvent;

  sys::OwnedFd fd;
  std::vector<sys::OwnedFd> followers;  // closed before their leader
  uint64_t id = 0;
  uint32_t event = kTracking;
  int tid = -1;  // whose it was opened for; those that inherit it write under its id
  bool user_only = false;
  uint64_t lost_settled = 0;  // of its losses, those that are in the accounting
  EventCount known;           // what the last Read that succeeded said
  bool stuck = false;         // could not be switched on although it should be

  // Tries again when a signal interrupts it. Returns nullopt if the kernel does not say: the event is in error state.
  std::optional<EventCount> Read(const SampleLayout& layout);
  absl::Status Switch(unsigned long request) const;
  // In the child of a fork.
  void OnForkedChild() {
    for (sys::OwnedFd& follower : followers) follower.Reset();
    fd.Reset();
  }
};

// Opens event `event` there, switched off, with its followers, and its output in `ring`.
absl::StatusOr<RingEvent> OpenRingEvent(const Plan& plan, const SamplingLevel& level, uint32_t event, size_t part,
                                        const open::TaskCpu& task_cpu, const open::OutputRing& ring);
// Whether event `event` and its followers can ever run together. InvalidArgument when not.
absl::Status CheckFits(const Plan& plan, uint32_t event);
// The same as OpenRingEvent for a dummy: Plan::TrackingRequest or SwitchesRequest.
absl::StatusOr<RingEvent> OpenTrackingEvent(const Plan& plan, open::OpenRequest request, const open::TaskCpu& task_cpu,
                                            const open::OutputRing& ring);

}  // namespace perfkit::sample
