// Sums the times between a thread's switches, from its first SWITCH record to its EXIT record.
#include "perfkit/thread_times.h"

namespace perfkit {

void ThreadTimes::State::AdvanceTo(uint64_t now_ns) {
  if (time.ended || now_ns <= last_ns) return;
  const uint64_t passed = now_ns - last_ns;
  (time.running ? time.on_ns : time.off_ns) += passed;
  if (!time.running && preempted) time.preempted_ns += passed;
  last_ns = now_ns;
}

void ThreadTimes::State::EndAt(uint64_t now_ns) {
  AdvanceTo(now_ns);
  time.running = false;
  time.ended = true;
}

void ThreadTimes::Add(const RawRecord& record, const SampleLayout& layout) {
  if (const auto change = SwitchRecord::Parse(record, layout)) return AddSwitch(*change);
  if (const auto exit = ExitRecord::Parse(record, layout)) {
    const auto found = threads_.find(exit->tid);
    if (found != threads_.end()) found->second.EndAt(exit->time_ns);
    return;
  }
  // Synthesized records have id 0. They report existing threads, not new ones.
  const auto fork = ForkRecord::Parse(record, layout);
  if (fork && layout.IdOf(record).value_or(0) != 0) AddFork(*fork);
}

void ThreadTimes::AddSwitch(const SwitchRecord& change) {
  if (change.who.tid.value_or(0) == 0 || !change.who.time_ns) return;
  // Before its first record nothing is known of a thread, not even whether it ran.
  const auto [found, first] = threads_.try_emplace(*change.who.tid);
  State& state = found->second;
  // The events of a CPU see a thread leave once more after its EXIT record (kernel/exit.c: do_exit, then do_task_dead).
  if (state.time.ended) return;
  if (first) {
    state.time.tid = *change.who.tid;
    state.last_ns = *change.who.time_ns;
  } else {
    if (*change.who.time_ns < state.last_ns) return;  // what the later record says of the thread still holds
    state.AdvanceTo(*change.who.time_ns);
  }
  state.time.running = !change.out;
  state.preempted = change.out && change.preempted;
  state.time.switches += change.out;
  state.time.preemptions += state.preempted;
}

// The thread that had this tid before has ended. If its EXIT record was lost, its time ends at its last record.
void ThreadTimes::AddFork(const ForkRecord& fork) {
  const auto found = threads_.find(fork.tid);
  if (found == threads_.end() || fork.time_ns <= found->second.last_ns) return;
  found->second.EndAt(found->second.last_ns);
  replaced_.push_back(found->second.time);
  threads_.erase(found);
}

void ThreadTimes::Until(uint64_t now_ns) {
  for (auto& [tid, state] : threads_) state.AdvanceTo(now_ns);
}

std::optional<ThreadTime> ThreadTimes::Of(uint32_t tid) const {
  const auto found = threads_.find(tid);
  return found == threads_.end() ? std::nullopt : std::optional(found->second.time);
}

std::vector<ThreadTime> ThreadTimes::All() const {
  std::vector<ThreadTime> all = replaced_;
  for (const auto& [tid, state] : threads_) all.push_back(state.time);
  return all;
}

}  // namespace perfkit
