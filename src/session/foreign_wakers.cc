// Keeps the wake-ups of threads that have slept, for as long as the session may read its own records late.
#include "src/session/foreign_wakers.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_format.h"
#include "src/proc/stat.h"
#include "src/proc/threads.h"

namespace perfkit::session {
namespace {

constexpr uint64_t kNameLastsNs = 1'000'000'000;  // a tid may become another thread's
constexpr size_t kMaxKnown = 4096;

}  // namespace

std::string ForeignWakers::NameOf(uint32_t pid, uint32_t tid) {
  const absl::StatusOr<std::string> name = proc::ThreadName(static_cast<pid_t>(pid), static_cast<pid_t>(tid));
  if (!name.ok()) return absl::StrFormat("a thread (%d)%s", tid, ProfileWait::kOfOtherProgram);
  const std::optional<proc::Stat> stat = proc::ReadStat(static_cast<pid_t>(pid));
  const bool is_of_kernel = stat && stat->is_of_kernel;
  return absl::StrFormat("%s (%d)%s", *name, tid, is_of_kernel ? kOfKernel : ProfileWait::kOfOtherProgram);
}

void ForeignWakers::Left(uint32_t pid, uint32_t tid) {
  if (pid == pid_) {
    own_.insert(tid);
  } else if (own_.erase(tid) != 0) {
    wakers_.erase(tid);
  }
}

const std::string& ForeignWakers::NameAt(uint32_t pid, uint32_t tid, uint64_t time_ns) {
  if (names_.size() >= kMaxKnown) names_.clear();
  Known& known = names_[tid];
  if (known.read_ns == 0 || time_ns - std::min(time_ns, known.read_ns) >= kNameLastsNs) {
    known = {name_of_(pid, tid), time_ns};
  }
  return known.name;
}

void ForeignWakers::Add(const Waking& waking, TaskId waker, uint64_t time_ns) {
  if (!own_.contains(waking.tid)) return;
  std::deque<Waker>& wakers = wakers_[waking.tid];
  if (waking.by_interrupt || waker.tid == 0) {
    wakers.push_back({std::string(ProfileWait::kInterrupt), time_ns});
  } else if (waker.pid == pid_) {
    wakers.push_back({"", time_ns});  // the session's own sampler knows it
  } else {
    wakers.push_back({NameAt(waker.pid, waker.tid, time_ns), time_ns});
  }
}

std::optional<Waker> ForeignWakers::Find(uint32_t tid, uint64_t from_ns, uint64_t to_ns) const {
  const auto found = wakers_.find(tid);
  if (found == wakers_.end()) return std::nullopt;
  for (auto waker = found->second.rbegin(); waker != found->second.rend() && waker->at_ns >= from_ns; ++waker) {
    if (waker->at_ns > to_ns) continue;
    return waker->name.empty() ? std::nullopt : std::optional(*waker);
  }
  return std::nullopt;
}

void ForeignWakers::Forget(uint64_t until_ns) {
  for (auto entry = wakers_.begin(); entry != wakers_.end();) {
    std::deque<Waker>& wakers = entry->second;
    while (!wakers.empty() && wakers.front().at_ns < until_ns) wakers.pop_front();
    entry = wakers.empty() ? wakers_.erase(entry) : std::next(entry);
  }
}

}  // namespace perfkit::session
