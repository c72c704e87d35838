// Finds duplicates: which thread's events count for each thread.
//
// A thread inherits its parent's events. If it starts while its parent is being attached, it may have inherited some of
// them and be attached itself as well. Then it has two copies of an event, and so has each thread that it starts.
//
//   P ── attached ─────────────────────────>      N has P's events (maybe on some CPUs only) and its own: only N's own
//   └── N, born meanwhile, attached as well ──>   count. M has inherited both: only N's count, because they are whole.
//       └── M, born later ────────────────────>
//
// So each thread has one owner, the thread whose events count for it: itself if it was attached, else its parent's
// owner, which FORK records give. A sample of another owner's event is a duplicate. Records are read later than they
// are written: a record from before a thread was attached does not change its owner.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <unordered_map>

namespace perfkit::sample {

class InheritanceMap {
 public:
  void AddAttached(pid_t tid, uint64_t now_ns) { owners_[tid] = {tid, now_ns}; }
  bool IsAttached(pid_t tid) const {
    const auto found = owners_.find(tid);
    return found != owners_.end() && found->second.tid == tid;
  }

  // Threads with two copies of an event may exist. That is rare; otherwise nothing else here is called.
  void ExpectDuplicates() { duplicates_ = true; }
  bool expects_duplicates() const { return duplicates_; }

  // Add FORK and EXIT records of time `time_ns`. The kernel may reuse the tid of an ended thread.
  void Born(pid_t tid, pid_t parent, uint64_t time_ns) {
    if (!IsOlder(tid, time_ns)) owners_[tid] = {OwnerOf(parent, parent), 0};
  }
  void Ended(pid_t tid, uint64_t time_ns) {
    if (!IsOlder(tid, time_ns)) owners_.erase(tid);
  }

  // Returns true if `owner`'s events count for `tid`. An unknown thread started before duplicates were possible: it has
  // one owner, the first that is passed here.
  bool Counts(pid_t tid, pid_t owner) { return owners_.try_emplace(tid, Owner{owner, 0}).first->second.tid == owner; }

 private:
  struct Owner {
    pid_t tid = 0;
    uint64_t attached_ns = 0;  // Time at which the thread itself was attached; else 0.
  };

  // Returns true if the thread was attached after `time_ns`.
  bool IsOlder(pid_t tid, uint64_t time_ns) const {
    const auto found = owners_.find(tid);
    return found != owners_.end() && time_ns < found->second.attached_ns;
  }
  pid_t OwnerOf(pid_t tid, pid_t otherwise) const {
    const auto found = owners_.find(tid);
    return found == owners_.end() ? otherwise : found->second.tid;
  }

  std::unordered_map<pid_t, Owner> owners_;
  bool duplicates_ = false;
};

}  // namespace perfkit::sample
