// The rings of a sampler: the set that is written, for overwriting the one that takes over, and the side band; and the
// descriptor on which to wait for them.
//
// Each thread or CPU with rings has one in each set. All together never exceed SamplerOptions::memory_bytes, and the
// poll descriptor has all that a drain reads, apart from those whose owner has ended.
#pragma once

#include <sys/types.h>

#include <initializer_list>
#include <memory>
#include <vector>

#include "src/sample/ring_set.h"

namespace perfkit::sample {

// Not thread-safe.
class SamplerRings {
 public:
  // The plan must outlive the rings.
  explicit SamplerRings(const Plan& plan) : plan_(plan) {}
  SamplerRings(const SamplerRings&) = delete;
  SamplerRings& operator=(const SamplerRings&) = delete;

  // Opens a ring of each set for each of `tids` on each of `cpus`. They become smaller until they fit into the memory
  // that the options and the kernel permit. Errors: ResourceExhausted if they do not fit with one page each.
  absl::Status Open(const std::vector<pid_t>& tids, const std::vector<int>& cpus);
  // Opens rings for a thread that started later, smaller ones if memory is nearly used up. On an error it has none.
  absl::Status AddRingsOf(pid_t tid);
  void DropRingsOf(pid_t tid);
  // Starts to wait for all rings.
  absl::Status OpenPoll();
  // Puts the rings that AddRingsOf has opened for a thread into the state of the others. `paused`: those are paused.
  absl::Status SetUpRingsOf(pid_t tid, bool paused);
  // Stops to wait for rings whose owner has ended: each wait would return at once. Marks their slots as hung up.
  void DropHungUp();
  // Notes that an EXIT record was read, or that one may have been lost.
  void SawExit() { end_checks_ = kEndChecks; }
  // Called after each drain: finds out whether the target has ended. A running sampler has EXIT records: it looks after
  // these, and each kEndCheckNs besides.
  void CheckEnd(bool is_running);
  // Returns true if, at the last CheckEnd, all sampled threads had ended, and all that inherited their events.
  bool target_ended() const { return target_ended_; }
  // Pauses or resumes the rings of samples, also the set that takes over at the next snapshot.
  absl::Status Pause(bool pause) const;
  bool HasRecords();
  // Returns the threads of rings that hold records, sorted.
  std::vector<pid_t> ThreadsWithRecords();
  // Enables events that could not be enabled before.
  void SwitchOnStuck();

  int poll_fd() const { return epoll_.get(); }
  size_t ring_bytes() const { return ring_bytes_; }
  // Why the rings are smaller, or others, than requested; OK if they are not.
  const absl::Status& ring_status() const { return ring_status_; }
  // Adds to ring_status that there is one for each thread, because others failed for `reason`.
  void ExplainRingsOfThreads(const absl::Status& reason);
  size_t ring_sets() const { return plan_.options().mode == RingMode::kOverwrite ? 2 : 1; }
  // Returns the maximum for the kernel's rings, and for those of live stacks: memory_bytes, or half of it with live
  // stacks.
  static size_t Memory(const Plan& plan) { return plan.options().memory_bytes / (plan.live() ? 2 : 1); }

  // Visits the slots of all ring sets, in the order of their numbers: LossInterval::ring.
  template <class Each>
  void ForEachSlot(Each&& each) {
    for (RingSet* const set : {&active, &side, &spare}) {
      for (const std::unique_ptr<RingSlot>& slot : set->rings) each(*slot);
    }
  }
  template <class Each>
  void ForEachEvent(Each&& each) {
    for (RingSet* const set : {&active, &spare, &side}) {
      for (RingEvent& ring_event : set->events) each(ring_event);
    }
  }
  // Returns ring `i` of the merge: the side band comes first.
  RingSlot& MergedSlot(size_t i) {
    return i < side.rings.size() ? *side.rings[i] : *active.rings[i - side.rings.size()];
  }

  // Closes all events, then the rings that they write to.
  void Close();
  void OnForkedChild();

  RingSet active;  // The set that is being written.
  RingSet spare;   // kOverwrite: the set that takes over at the next snapshot, or holds the last one.
  RingSet side{RingSet::Role::kSideBand};

 private:
  absl::Status ChooseSize(size_t threads_or_cpus);
  absl::Status OpenOnce(const std::vector<pid_t>& tids, const std::vector<int>& cpus);
  absl::Status AddRings(pid_t tid, size_t bytes);
  absl::Status Poll(const RingSlot& slot);
  void DropHungUp(int fd);
  void WatchEnd(int fd);

  // A thread writes its EXIT record before its events end, so the next drain looks once more. If the thread was
  // preempted in between, or its record was lost, a later look finds it.
  static constexpr int kEndChecks = 2;
  static constexpr uint64_t kEndCheckNs = 100'000'000;

  const Plan& plan_;
  sys::OwnedFd epoll_;
  int end_checks_ = kEndChecks;  // Number of CheckEnds that look.
  uint64_t end_checked_ns_ = 0;  // Time of the last look.
  int watched_end_ = -1;         // Event whose hang-up wakes poll_fd(); -1 means none.
  bool target_ended_ = false;
  size_t ring_bytes_ = 0;
  absl::Status ring_status_;
};

// Returns true if smaller rings may do: what was short was memory, not descriptors.
bool IsOutOfMemory(const absl::Status& status);
// Returns true if what was short was descriptors, of this process or of the system.
bool IsOutOfDescriptors(const absl::Status& status);

}  // namespace perfkit::sample
