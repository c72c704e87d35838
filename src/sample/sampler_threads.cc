// Follows threads that start and end: notes their parents, and, with Rings::kPerThread, opens and closes their rings.
// FORK and EXIT records report them; /proc is read for those without a record. An ended thread's rings are closed one
// drain later, when they have been read completely. A thread that ends before it is attached, or gets no ring, is
// counted in threads_missed.
#include <algorithm>
#include <array>
#include <utility>

#include "src/sample/sampler_impl.h"

namespace perfkit::sample {

void SamplerImpl::TakeTask(const RawRecord& raw) {
  const bool follows = follows_threads();
  bool duplicates = !fresh_.empty();
  ForEachInheritanceMap([&](const InheritanceMap& inheritance) { duplicates |= inheritance.expects_duplicates(); });
  if (!follows && !duplicates) return;
  if (const auto fork = ForkRecord::Parse(raw, plan_.layout())) {
    const auto tid = static_cast<pid_t>(fork->tid);
    if (!follows) {
      ForEachInheritanceMap([&](InheritanceMap& inheritance) {
        inheritance.Born(tid, static_cast<pid_t>(fork->parent_tid), fork->time_ns);
      });
    } else if (fork->pid == fork->parent_pid) {
      born_.push_back(tid);
    }
  }
  if (const auto exit = ExitRecord::Parse(raw, plan_.layout())) {
    const auto tid = static_cast<pid_t>(exit->tid);
    if (!follows)
      return ForEachInheritanceMap([&](InheritanceMap& inheritance) { inheritance.Ended(tid, exit->time_ns); });
    ending_.push_back(tid);
  }
}

// FORK or EXIT records were lost, so a tid may belong to another thread by now. Replaced events have known owners;
// duplicates in the side band do no harm.
void SamplerImpl::ForgetTasks() {
  rescan_ = true;
  if (inheritance_.expects_duplicates()) anew_due_ = true;
  side_inheritance_ = InheritanceMap();
}

// The rings of threads that ended before the last drain have been read since, so they are empty. Overwriting rings are
// read only by a snapshot or after Stop.
void SamplerImpl::FollowThreads(bool drained) {
  const bool changed = rescan_ || !born_.empty() || !ended_.empty();
  if (changed) {
    const sys::ForkBlocker fork_blocker;
    if (drained) RetireEnded();
    if (running_) AttachNewcomers();
    CountMissed();
  }
  ended_.insert(ended_.end(), ending_.begin(), ending_.end());
  ending_.clear();
  if (changed) Index(Now(plan_.options().clock_id));
}

// Also attaches threads without a FORK record: they started before Start, or by a thread that was not attached yet. A
// thread that a newcomer starts before its side band is enabled is found in the next round.
void SamplerImpl::AttachNewcomers() {
  constexpr int kRounds = 16;
  if (std::exchange(rescan_, false)) FindEnded();
  for (int round = 0; round < kRounds && AttachListed(); ++round) {
  }
}

// Counts new threads that have no ring. Those in refused_ are counted already.
void SamplerImpl::CountMissed() {
  for (const pid_t tid : born_) {
    threads_missed_ += !inheritance_.IsAttached(tid) && std::count(refused_.begin(), refused_.end(), tid) == 0;
  }
  born_.clear();
}

// Returns true if a thread was attached.
bool SamplerImpl::AttachListed() {
  const absl::StatusOr<std::vector<pid_t>> threads = ThreadsNow(plan_);
  if (!threads.ok()) {
    rescan_ = true;
    return false;
  }
  std::erase_if(refused_, [&](pid_t tid) { return std::count(threads->begin(), threads->end(), tid) == 0; });
  bool any = false;
  for (const pid_t tid : *threads) {
    if (!inheritance_.IsAttached(tid)) any |= AttachNewcomer(tid);
  }
  return any;
}

bool SamplerImpl::AttachNewcomer(pid_t tid) {
  const std::array<RingSet*, 2> ring_sets = {&side_, &active_};  // The sets whose events are enabled.
  std::array<size_t, 2> before{};
  for (size_t i = 0; i < ring_sets.size(); ++i) before[i] = ring_sets[i]->events.size();
  absl::Status status = AttachOne(tid, true);
  if (status.ok()) status = SetUpRingsOf(tid);
  for (size_t i = 0; i < ring_sets.size(); ++i) {
    const std::vector<RingEvent>& events = ring_sets[i]->events;
    for (size_t ring_event = before[i]; ring_event < events.size() && status.ok(); ++ring_event) {
      status = events[ring_event].Switch(sys::kIocEnable);
    }
  }
  if (status.ok()) {
    std::erase(refused_, tid);
    return true;
  }
  Leave(tid);
  if (!absl::IsNotFound(status) && std::count(refused_.begin(), refused_.end(), tid) == 0) {
    refused_.push_back(tid);
    ++threads_missed_;
  }
  return false;
}

absl::Status SamplerImpl::SetUpRingsOf(pid_t tid) {
  absl::Status status;
  for (const RingSet* const set : {&active_, &spare_, &side_}) {
    for (const std::unique_ptr<RingSlot>& slot : set->rings) {
      if (slot->tid != tid || !status.ok()) continue;
      if (set != &side_ && paused_) status = slot->ring.Pause(true);
      if (set != &spare_ && status.ok()) status = Poll(*slot);
    }
  }
  return status;
}

// Removes everything of thread `tid`, except its counts.
void SamplerImpl::Leave(pid_t tid) {
  for (RingSet* const set : {&active_, &spare_, &side_}) {
    for (RingEvent& ring_event : set->events) {
      if (ring_event.tid == tid) SettleClosed(ring_event);
    }
    std::erase_if(set->events, [tid](const RingEvent& ring_event) { return ring_event.tid == tid; });
  }
  DropRingsOf(tid);
  ForEachInheritanceMap([tid](InheritanceMap& inheritance) { inheritance.Ended(tid, UINT64_MAX); });
}

// Finds threads whose EXIT record was lost or not written: their rings have hung up. The rings may still hold records.
void SamplerImpl::FindEnded() {
  DropHungUp();
  ForEachSlot([this](const RingSlot& slot) {
    if (!slot.hung_up || std::count(ended_.begin(), ended_.end(), slot.tid) != 0) return;
    if (std::count(ending_.begin(), ending_.end(), slot.tid) == 0) ending_.push_back(slot.tid);
    rescan_ = true;  // Its tid may belong to another thread by now.
  });
}

void SamplerImpl::RetireEnded() {
  for (const pid_t tid : ended_) Leave(tid);
  std::erase_if(last_ips_, [this](const auto& last) {
    return std::count(ended_.begin(), ended_.end(), SignalNumber::OwnerOf(last.first)) != 0;
  });
  ended_.clear();
}

}  // namespace perfkit::sample
