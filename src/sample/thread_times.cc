// Adds up the times between a thread's switches.
#include "perfkit/sampler.h"

namespace perfkit {

void ThreadTimes::State::AdvanceTo(uint64_t now_ns) {
  if (now_ns <= last_ns) return;
  const uint64_t passed = now_ns - last_ns;
  (time.running ? time.on_ns : time.off_ns) += passed;
  if (!time.running && preempted) time.preempted_ns += passed;
  last_ns = now_ns;
}

void ThreadTimes::Add(const RawRecord& record, const SampleLayout& layout) {
  const std::optional<SwitchRecord> change = SwitchRecord::Parse(record, layout);
  if (!change || !change->who.tid || !change->who.time_ns) return;
  const auto [found, first] = threads_.try_emplace(*change->who.tid);
  State& state = found->second;
  if (first) {
    state.time.tid = *change->who.tid;
    state.last_ns = *change->who.time_ns;
  } else {
    state.AdvanceTo(*change->who.time_ns);
  }
  state.time.running = !change->out;
  state.preempted = change->out && change->preempted;
  state.time.switches += change->out;
  state.time.preemptions += state.preempted;
}

void ThreadTimes::Until(uint64_t now_ns) {
  for (auto& [tid, state] : threads_) state.AdvanceTo(now_ns);
}

std::optional<ThreadTime> ThreadTimes::Of(uint32_t tid) const {
  const auto found = threads_.find(tid);
  return found == threads_.end() ? std::nullopt : std::optional(found->second.time);
}

std::vector<ThreadTime> ThreadTimes::All() const {
  std::vector<ThreadTime> all;
  for (const auto& [tid, state] : threads_) all.push_back(state.time);
  return all;
}

}  // namespace perfkit
