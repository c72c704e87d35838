// The rings of a sampler and the events that write into them: one set for streaming, two that take turns for
// overwriting, and one for the side band.
//
//   kPerCpu      ring of CPU 0 <── events of A on CPU 0, of B on CPU 0, …    owned by the main thread,
//                ring of CPU 1 <── events of A on CPU 1, of B on CPU 1, …    which outlives the others
//   one thread,  ring of A     <── events of A, on any CPU                   owned by that thread
//   kPerThread   ring of B     <── events of B
//   whole CPUs   ring of CPU 0 <── events of CPU 0
//
// Samples can't be interpreted without the side band, so its records must not be lost because of samples. They have
// small rings of their own, one beside each ring of samples, which always stream and are never paused.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/sample/ring_event.h"

namespace perfkit::sample {

// A ring with its thread and CPU.
struct RingSlot {
  static constexpr pid_t kShared = -1;

  open::OutputRing ring;
  pid_t tid = kShared;  // The only thread that writes to it; kShared: all attached threads.
  int cpu = -1;
  uint64_t last_time_ns = 0;      // Time of the last record that was read.
  uint64_t previous_time_ns = 0;  // Time of the record before it.
  // The last sample of each event, if duplicates are expected. `unpaired`: number of samples that count whose duplicates
  // may still come (DuplicateFilter).
  struct Last {
    uint64_t time_ns = 0;  // As the kernel wrote it.
    uint32_t tid = 0;
    uint32_t unpaired = 0;
    bool given = false;
  };
  std::vector<Last> last;
  bool hung_up = false;  // Its owner has ended, so that poll would always return at once.
};

class RingSet {
 public:
  enum class Role : uint8_t { kSamples, kSideBand };

  explicit RingSet(Role role = Role::kSamples) : role_(role) {}

  // Opens a ring of `bytes` for each of `tids` on each of `cpus`. Errors: ResourceExhausted if this user may not lock
  // that much memory.
  absl::Status OpenRings(const Plan& plan, const std::vector<pid_t>& tids, const std::vector<int>& cpus, size_t bytes);
  // Adds a ring for one thread, or for a CPU that came online.
  absl::Status AddRing(const Plan& plan, pid_t tid, int cpu, size_t bytes);
  bool HasRing(pid_t tid) const;
  // Returns the size of all rings together.
  size_t RingBytes() const;

  // Opens all events of thread `tid` (kShared: of whole CPUs) in all rings for it. With `tracking` also the events for
  // SWITCH records. Errors: NotFound if the thread has ended. After an error some events may be open:
  // ThreadAttacher closes them.
  absl::Status Attach(const Plan& plan, const SamplingLevel& level, pid_t tid, bool tracking = true);

  // Enables or disables all events. Events for SWITCH records are enabled before and disabled after the others.
  // `inherited`: threads may start meanwhile. On an error it goes on with the other events, and returns the first
  // error.
  absl::Status SwitchAll(bool on, bool inherited);
  absl::Status SwitchEvents(bool on, bool inherited);
  absl::Status Pause(bool pause) const;
  bool IsNearlyFull(size_t largest_record) const;
  // Returns the first event whose thread lives, or a thread that has inherited it; nullptr if there is none. To be
  // called after a drain: it may take back the wake-up of a ring for records that were not read yet.
  const RingEvent* FirstLiving();

  // Closes all descriptors in a forked child.
  void OnForkedChild();

  std::vector<std::unique_ptr<RingSlot>> rings;
  std::vector<RingEvent> events;
  std::vector<RingEvent> fresh;  // Opened beside `events`, disabled: they are about to replace them.
  // Were replaced, disabled, not closed: a thread may be in the middle of a sample that is counted already, and closing
  // the event would take its ring away (ring_buffer_attach in kernel/events/core.c), without a loss being counted.
  std::vector<RingEvent> closing;

 private:
  absl::Status AttachTrackingEvent(const Plan& plan, open::OpenRequest request, pid_t tid, const RingSlot& slot);
  absl::Status AttachTo(const Plan& plan, const SamplingLevel& level, pid_t tid, const RingSlot& slot, bool tracking);
  // Switches the tracking events, or the others.
  absl::Status SwitchThose(bool on, bool tracking);

  Role role_;
};

// Returns the CPUs with rings of their own. For all threads: the present CPUs, because a thread's event can be opened
// on an offline CPU, and counts once that is online. For whole CPUs: those of the target that are online. For rings of
// threads: {-1}.
absl::StatusOr<std::vector<int>> CpusOf(const Plan& plan);

}  // namespace perfkit::sample
