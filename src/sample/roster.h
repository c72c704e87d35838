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
// owner, which FORK records tell. What another owner's events say about it is a duplicate.
#pragma once

#include <sys/types.h>

#include <unordered_map>

namespace perfkit::sample {

class Roster {
 public:
  void AddAttached(pid_t tid) { owners_[tid] = tid; }
  bool IsAttached(pid_t tid) const {
    const auto found = owners_.find(tid);
    return found != owners_.end() && found->second == tid;
  }

  // Whether threads with two of a kind may exist at all. Almost never: then nothing else here is asked.
  void ExpectDuplicates() { duplicates_ = true; }
  bool expects_duplicates() const { return duplicates_; }

  // FORK and EXIT records. A number may be given to a new thread once its last one has ended.
  void Born(pid_t tid, pid_t parent) { owners_[tid] = OwnerOf(parent, parent); }
  void Ended(pid_t tid) { owners_.erase(tid); }

  // Whether `owner`'s events are those that count for `tid`. A thread of which nothing is known was born before
  // anything could be doubled: it has one owner, the first that speaks for it.
  bool Counts(pid_t tid, pid_t owner) { return owners_.try_emplace(tid, owner).first->second == owner; }

 private:
  pid_t OwnerOf(pid_t tid, pid_t otherwise) const {
    const auto found = owners_.find(tid);
    return found == owners_.end() ? otherwise : found->second;
  }

  std::unordered_map<pid_t, pid_t> owners_;
  bool duplicates_ = false;
};

}  // namespace perfkit::sample
