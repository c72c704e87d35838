// The rings of a sampler and the events that write into them: one set for streaming, two that take turns for
// overwriting, and one for the side band.
//
//   kPerCpu      ring of CPU 0 <── events of A on CPU 0, of B on CPU 0, …    owned by the main thread,
//                ring of CPU 1 <── events of A on CPU 1, of B on CPU 1, …    which outlives the others
//   one thread,  ring of A     <── events of A, on any CPU                   owned by that thread
//   kPerThread   ring of B     <── events of B
//   whole CPUs   ring of CPU 0 <── events of CPU 0
//
// What is mapped, who starts and who ends must be known for samples to have names, however many of them there are. So
// these records have small rings of their own, beside each ring of samples, which always stream and are never paused.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/sample/ring_event.h"

namespace perfkit::sample {

// A ring and where it is.
struct RingSlot {
  static constexpr pid_t kShared = -1;

  open::OutputRing ring;
  pid_t tid = kShared;  // whose alone it is; kShared: of all threads that are attached
  int cpu = -1;
  uint64_t last_time_ns = 0;      // of the records read so far
  uint64_t previous_time_ns = 0;  // of the one before the last
  // The last sample of each event, where duplicates are expected.
  struct Last {
    uint64_t time_ns = 0;
    uint32_t tid = 0;
    bool given = false;
  };
  std::vector<Last> last;
  bool hung_up = false;  // its owner has ended: waiting for it would return at once, for ever
};

class RingSet {
 public:
  enum class Role : uint8_t { kSamples, kSideBand };

  explicit RingSet(Role role = Role::kSamples) : role_(role) {}

  // Opens the rings that are there from the start: one of `bytes` for each of `tids` on each of `cpus`.
  // Errors: ResourceExhausted if this user may not lock that much.
  absl::Status OpenRings(const Plan& plan, const std::vector<pid_t>& tids, const std::vector<int>& cpus, size_t bytes);
  // Another ring, for one thread, or for a CPU that came online.
  absl::Status AddRing(const Plan& plan, pid_t tid, int cpu, size_t bytes);
  bool HasRing(pid_t tid) const;
  // Of all rings together.
  size_t RingBytes() const;

  // Opens all events of thread `tid` (kShared: of whole CPUs) in all rings that are for it.
  // NotFound when the thread has ended meanwhile. What was opened before an error is left: SamplerImpl::AttachOne.
  // `tracking`: with the events for SWITCH records.
  absl::Status Attach(const Plan& plan, const SamplingLevel& level, pid_t tid, bool tracking = true);

  // All events on or off: SWITCH records are on before, and off after the others. `inherited`: threads may be born
  // meanwhile.
  // An event that cannot be switched does not keep the others from it: the first error is returned.
  absl::Status SwitchAll(bool on, bool inherited);
  absl::Status SwitchEvents(bool on, bool inherited);
  absl::Status Pause(bool pause) const;
  bool IsNearlyFull(size_t largest_record) const;

  // In the child of a fork.
  void OnForkedChild();

  std::vector<std::unique_ptr<RingSlot>> rings;
  std::vector<RingEvent> events;

 private:
  absl::Status AttachTrackingEvent(const Plan& plan, open::OpenRequest request, pid_t tid, const RingSlot& slot);
  absl::Status AttachTo(const Plan& plan, const SamplingLevel& level, pid_t tid, const RingSlot& slot, bool tracking);
  absl::Status SwitchThose(bool on, bool tracking);

  Role role_;
};

// The CPUs that have rings of their own. For all threads those present: a thread's event opens on a CPU that is
// offline, and counts there when it comes online. For whole CPUs those of the target that are online. {-1} for rings of
// threads.
absl::StatusOr<std::vector<int>> CpusOf(const Plan& plan);

}  // namespace perfkit::sample
