// Whose events a thread's records come from, so that each counts once.
//
// A thread inherits its parent's events. One that is born while its parent is being attached may have inherited some of
// them and be attached by itself as well: then it has two of a kind, and so has every thread that it starts later.
//
//   P ── attached ─────────────────────────>      N has P's events (maybe on some CPUs only) and its own: only N's own
//   └── N, born meanwhile, attached as well ──>   count. M has inherited both: only N's count, because they are whole.
//       └── M, born later ────────────────────>
//
// So each thread has one owner, the thread whose events are its own: itself when it was attached, else its parent's
// owner, which FORK records tell. What another owner's events say about it is a duplicate. Records are read
// later than they were written: one from before a thread was attached does not change the thread's owner.
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

  // Whether threads with two of a kind may exist at all. Almost never: then nothing else here is asked.
  void ExpectDuplicates() { duplicates_ = true; }
  bool expects_duplicates() const { return duplicates_; }

  // FORK and EXIT records of `time_ns`. A number may be given to a new thread once its last one has ended.
  void Born(pid_t tid, pid_t parent, uint64_t time_ns) {
    if (!IsOlder(tid, time_ns)) owners_[tid] = {OwnerOf(parent, parent), 0};
  }
  void Ended(pid_t tid, uint64_t time_ns) {
    if (!IsOlder(tid, time_ns)) owners_.erase(tid);
  }

  // Whether `owner`'s events are those that count for `tid`. A thread of which nothing is known was born before
  // anything could be doubled: it has one owner, the first that speaks for it.
  bool Counts(pid_t tid, pid_t owner) { return owners_.try_emplace(tid, Owner{owner, 0}).first->second.tid == owner; }

 private:
  struct Owner {
    pid_t tid = 0;
    uint64_t attached_ns = 0;  // when the thread itself was attached; else 0
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
