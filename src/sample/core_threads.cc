// Threads that come and go: whose child is whose, and rings for each of them where that is asked.
#include <algorithm>
#include <array>
#include <utility>

#include "src/sample/core.h"

namespace perfkit::sample {

void Core::TakeTask(const RawRecord& raw) {
  const bool follows = plan_.many_threads() && !plan_.per_cpu_rings();
  const bool duplicates = roster_.expects_duplicates() || side_roster_.expects_duplicates() || !fresh_.empty();
  if (!follows && !duplicates) return;
  if (const auto fork = ForkRecord::Parse(raw, plan_.layout())) {
    newcomers_ = true;
    ForEachRoster([&](Roster& roster) {
      if (!follows) roster.Born(static_cast<pid_t>(fork->tid), static_cast<pid_t>(fork->parent_tid));
    });
  }
  if (const auto exit = ExitRecord::Parse(raw, plan_.layout())) {
    const auto tid = static_cast<pid_t>(exit->tid);
    if (!follows) return ForEachRoster([&](Roster& roster) { roster.Ended(tid); });
    ending_.push_back(tid);
  }
}

// FORK or EXIT records were lost: a number may be another thread's by now. Events that are opened anew have owners that
// are known; twice in the side band does no harm.
void Core::ForgetTasks() {
  if (roster_.expects_duplicates()) anew_due_ = true;
  side_roster_ = Roster();
}

// A ring that the last drain found ended has been read once more since: nothing can be in it.
void Core::FollowThreads() {
  const bool changed = newcomers_ || !ended_.empty();
  if (changed) {
    const sys::NoFork whole;
    RetireEnded();
    if (std::exchange(newcomers_, false) && !paused_) JoinNewcomers();
  }
  ended_ = std::exchange(ending_, {});
  if (changed) Index();
}

void Core::JoinNewcomers() {
  const std::array<Bank*, 2> banks = {&side_, &bank_};
  std::array<size_t, 2> rings{}, leaves{};
  for (size_t i = 0; i < banks.size(); ++i) rings[i] = banks[i]->rings.size(), leaves[i] = banks[i]->leaves.size();
  if (!AttachThreads().ok()) ++threads_missed_;
  for (size_t i = 0; i < banks.size(); ++i) {
    for (size_t ring = rings[i]; ring < banks[i]->rings.size(); ++ring) {
      if (!Poll(*banks[i]->rings[ring]).ok()) ++threads_missed_;
    }
    for (size_t leaf = leaves[i]; leaf < banks[i]->leaves.size() && running_; ++leaf) {
      if (!banks[i]->leaves[leaf].Switch(sys::kIocEnable).ok()) ++threads_missed_;
    }
  }
}

void Core::RetireEnded() {
  const auto has_ended = [this](pid_t tid) { return std::count(ended_.begin(), ended_.end(), tid) != 0; };
  for (Bank* const bank : {&bank_, &spare_, &side_}) {
    for (Leaf& leaf : bank->leaves) {
      if (has_ended(leaf.tid)) CloseBooks(leaf);
    }
    std::erase_if(bank->leaves, [&](const Leaf& leaf) { return has_ended(leaf.tid); });
  }
  for (const pid_t tid : ended_) DropRingsOf(tid);
  for (const pid_t tid : ended_) ForEachRoster([&](Roster& roster) { roster.Ended(tid); });
  std::erase_if(last_ips_, [&](const auto& last) { return has_ended(SignalNumber::OwnerOf(last.first)); });
  ended_.clear();
}

}  // namespace perfkit::sample
