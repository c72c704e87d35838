// The lists of threads, and the rounds in which new ones are attached.
#include "src/sample/thread_tracker.h"

#include <algorithm>

namespace perfkit::sample {
namespace {

// Maximum number of rounds that attach threads which started during the round before.
constexpr int kNewcomerRounds = 16;

bool Contains(const std::vector<pid_t>& tids, pid_t tid) { return std::ranges::find(tids, tid) != tids.end(); }

}  // namespace

void ThreadTracker::FoundEnded(pid_t tid) {
  // Its rings are about to be closed already.
  if (Contains(ended_, tid)) return;
  if (!Contains(ending_, tid)) ending_.push_back(tid);
  Rescan();
}

// A thread that a newcomer starts before its side band is enabled is found in the next round.
void ThreadTracker::AttachNewcomers(absl::FunctionRef<absl::StatusOr<std::vector<pid_t>>()> list,
                                    absl::FunctionRef<bool(pid_t)> is_attached,
                                    absl::FunctionRef<absl::Status(pid_t)> attach) {
  for (int round = 0; round < kNewcomerRounds; ++round) {
    const absl::StatusOr<std::vector<pid_t>> threads = list();
    if (!threads.ok()) return Rescan();
    if (!AttachRound(*threads, is_attached, attach)) return;
  }
}

// Returns true if a thread was attached.
bool ThreadTracker::AttachRound(const std::vector<pid_t>& threads, absl::FunctionRef<bool(pid_t)> is_attached,
                                absl::FunctionRef<absl::Status(pid_t)> attach) {
  std::erase_if(refused_, [&](pid_t tid) { return !Contains(threads, tid); });
  bool any = false;
  for (const pid_t tid : threads) {
    if (is_attached(tid)) continue;
    const absl::Status status = attach(tid);
    if (status.ok()) {
      std::erase(refused_, tid);
      any = true;
    // NotFound: it has ended meanwhile. If its FORK record is read, CountMissed counts it.
    } else if (!absl::IsNotFound(status) && !Contains(refused_, tid)) {
      refused_.push_back(tid);
      ++missed_;
    }
  }
  return any;
}

void ThreadTracker::CountMissed(absl::FunctionRef<bool(pid_t)> is_attached) {
  for (const pid_t tid : born_) missed_ += !is_attached(tid) && !Contains(refused_, tid);
  born_.clear();
}

void ThreadTracker::CloseEnded(absl::FunctionRef<bool(pid_t)> is_read, absl::FunctionRef<void(pid_t)> leave) {
  for (const pid_t tid : std::exchange(ended_, {})) {
    if (is_read(tid)) {
      leave(tid);
    } else {
      ended_.push_back(tid);
    }
  }
}

void ThreadTracker::EndDrain() {
  ended_.insert(ended_.end(), ending_.begin(), ending_.end());
  ending_.clear();
}

}  // namespace perfkit::sample
