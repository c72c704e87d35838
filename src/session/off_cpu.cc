// A state machine for each thread: unknown, on, off, ended. A record says what the thread does from then on. Close adds
// up the time since the last record, and emits a span if the thread was off the CPU.
//
// Records may be missing (rings overflow). A record that contradicts the state is believed, and counted as a miss: sums
// are then wrong for that one span, and what comes after it is right again.
#include "src/session/off_cpu.h"

#include <algorithm>
#include <utility>

namespace perfkit::session {

void OffCpu::Begin(uint32_t thread, uint32_t tid, uint64_t time_ns) {
  const auto [entry, is_new] = threads_.try_emplace(thread);
  if (!is_new) return;
  State& state = entry->second;
  state.tid = tid;
  state.thread = thread;
  state.since_ns = time_ns;
}

void OffCpu::EmitSpan(const State& state, uint64_t now_ns, Emit emit) {
  OffCpuSpan span{.thread = state.thread, .from_ns = state.since_ns, .to_ns = now_ns, .preempted = state.preempted};
  span.ran_from_ns = state.ran_from_ns;
  // A look may be ahead of the records: then it belongs to a span that has not begun here yet.
  if (state.look && state.look->at_ns <= now_ns) {
    span.looked_ns = state.look->at_ns;
    span.stack = state.look->stack;
    span.quality = state.look->quality;
    span.call = state.look->call;
    span.wait = state.look->wait;
    span.holder = state.look->holder;
    span.holder_since_ns = state.holder_since_ns;
  }
  if (span.stack == ProfileStack::kRoot && state.last_stack != ProfileStack::kRoot) {
    span.stack = state.last_stack, span.quality = StackQuality::kLastKnown;
  }
  return state.waker ? Split(std::move(span), *state.waker, emit) : emit(span);
}

// The wait ends when the thread is woken. From then on it only waits for a CPU, which is what preempted means.
void OffCpu::Split(OffCpuSpan span, const Waker& waker, Emit emit) {
  const uint64_t now_ns = span.to_ns, woken_ns = std::clamp(waker.at_ns, span.from_ns, now_ns);
  span.waker = waker.name;
  span.to_ns = woken_ns;
  if (span.duration_ns() != 0) emit(span);
  span.from_ns = woken_ns, span.to_ns = now_ns;
  span.preempted = true;
  span.call.reset(), span.wait.clear(), span.waker.clear();
  span.looked_ns = span.holder_since_ns = 0;
  span.holder = {};
  if (span.duration_ns() != 0) emit(span);
}

// Adds the time since the last change to the thread's time on or off the CPU. kUnknown counts as off: a thread that
// runs would have a sample, or a record of its switch out.
void OffCpu::Close(State& state, uint64_t time_ns, Emit emit) {
  const uint64_t now_ns = std::max(time_ns, state.since_ns);
  const uint64_t passed_ns = now_ns - state.since_ns;
  if (state.phase == Phase::kOn) {
    state.times.on_ns += passed_ns;
  } else if (state.phase != Phase::kEnded && passed_ns > 0) {
    state.times.off_ns += passed_ns;
    EmitSpan(state, now_ns, emit);
  }
  state.since_ns = now_ns;
}

void OffCpu::Change(State& state, Phase phase, bool preempted) {
  if (state.phase == phase) ++missed_;
  state.phase = phase;
  if (phase == Phase::kOn) state.ran_from_ns = state.since_ns;
  state.preempted = preempted;
  state.waker.reset();
  // Close has moved since_ns to now: only a look at a later span stays.
  if (state.look && state.look->at_ns <= state.since_ns) state.look.reset();
}

void OffCpu::Switched(uint32_t thread, uint32_t tid, uint64_t time_ns, bool out, bool preempted, Emit emit) {
  if (paused_) return;
  Begin(thread, tid, time_ns);
  State& state = threads_[thread];
  if (state.phase == Phase::kEnded) return;
  // A thread that is switched out has run until now. One that is switched in was off, as kUnknown counts.
  if (out && state.phase == Phase::kUnknown) state.phase = Phase::kOn;
  Close(state, time_ns, emit);
  Change(state, out ? Phase::kOff : Phase::kOn, out && preempted);
}

void OffCpu::Woken(uint32_t thread, Waker waker) {
  const auto found = threads_.find(thread);
  if (found == threads_.end() || paused_) return;
  State& state = found->second;
  if (state.phase == Phase::kOff || state.phase == Phase::kUnknown) state.waker = std::move(waker);
}

void OffCpu::Ran(uint32_t thread, uint64_t time_ns, Emit emit) {
  const auto found = threads_.find(thread);
  if (found == threads_.end() || paused_) return;
  State& state = found->second;
  if (state.phase == Phase::kUnknown) state.phase = Phase::kOn;
  if (state.phase != Phase::kOff || time_ns <= state.since_ns) return;
  Close(state, time_ns, emit);
  Change(state, Phase::kOn, false);
  ++missed_;
}

void OffCpu::SetLastStack(uint32_t thread, uint32_t stack) {
  const auto found = threads_.find(thread);
  if (found != threads_.end()) found->second.last_stack = stack;
}

void OffCpu::End(uint32_t thread, uint64_t time_ns, Emit emit) {
  const auto found = threads_.find(thread);
  if (found == threads_.end() || found->second.phase == Phase::kEnded) return;
  State& state = found->second;
  // A thread that ends runs. Without any record it has run until now.
  const bool has_run = time_ns <= known_until_ns_ || state.seen_running;
  if (state.phase == Phase::kUnknown && has_run) state.phase = Phase::kOn;
  if (!paused_) Close(state, time_ns, emit);
  state.phase = Phase::kEnded;
}

std::vector<OffCpu::Sleeper> OffCpu::Unknown() const {
  std::vector<Sleeper> unknown;
  for (const auto& [thread, state] : threads_) {
    if (state.phase == Phase::kUnknown) unknown.push_back({thread, state.tid});
  }
  return unknown;
}

void OffCpu::SeenRunning(uint32_t thread, bool runs) {
  const auto found = threads_.find(thread);
  if (found != threads_.end()) found->second.seen_running = runs;
}

void OffCpu::CutAt(uint64_t time_ns, bool is_last, Emit emit) {
  if (paused_) return;
  for (auto& [thread, state] : threads_) {
    if (state.phase == Phase::kEnded) continue;
    // It was found running. That it has run all the time is certain only once no earlier record can appear.
    if (state.phase == Phase::kUnknown && state.seen_running) {
      if (!is_last) continue;
      state.phase = Phase::kOn;
    }
    Close(state, time_ns, emit);
  }
}

void OffCpu::Pause(uint64_t time_ns, Emit emit) {
  CutAt(time_ns, true, emit);
  paused_ = true;
}

void OffCpu::Resume(uint64_t time_ns) {
  paused_ = false;
  known_until_ns_ = UINT64_MAX;
  for (auto& [thread, state] : threads_) {
    if (state.phase == Phase::kEnded) continue;
    // There were no records in the pause.
    state.phase = Phase::kUnknown;
    state.since_ns = std::max(state.since_ns, time_ns);
    state.preempted = state.seen_running = false;
    state.look.reset();
    state.waker.reset();
  }
}

bool OffCpu::IsDue(const State& state, uint64_t now_ns) {
  if (!state.look) return true;
  const uint64_t by_then_ns = state.look->at_ns - std::min(state.look->at_ns, state.since_ns);
  return now_ns >= state.since_ns + by_then_ns + by_then_ns / 2;
}

bool OffCpu::IsDue(uint32_t thread, uint64_t now_ns) const {
  const auto found = threads_.find(thread);
  return !paused_ && found != threads_.end() && found->second.phase != Phase::kEnded && IsDue(found->second, now_ns);
}

std::vector<OffCpu::Sleeper> OffCpu::Watched() const {
  std::vector<Sleeper> watched;
  for (const auto& [thread, state] : threads_) {
    if (state.phase != Phase::kEnded) watched.push_back({thread, state.tid});
  }
  return watched;
}

std::vector<OffCpu::Sleeper> OffCpu::ToLookAt(uint64_t before_ns, uint64_t now_ns) const {
  std::vector<Sleeper> sleepers;
  if (paused_) return sleepers;
  for (const auto& [thread, state] : threads_) {
    const bool off = state.phase == Phase::kOff || state.phase == Phase::kUnknown;
    if (off && !state.preempted && state.since_ns <= before_ns && IsDue(state, now_ns)) {
      sleepers.push_back({thread, state.tid});
    }
  }
  return sleepers;
}

void OffCpu::Looked(uint32_t thread, const OffCpuLook& look) {
  const auto found = threads_.find(thread);
  if (found == threads_.end()) return;
  State& state = found->second;
  if (state.look && state.look->times_run != look.times_run) return;
  if (!state.look || state.look->holder.thread != look.holder.thread) state.holder_since_ns = look.at_ns;
  state.look = look;
}

void OffCpu::RenameHolders(std::span<const uint32_t> renamed) {
  for (auto& [thread, state] : threads_) {
    if (state.look && state.look->holder.thread < renamed.size()) {
      state.look->holder.thread = renamed[state.look->holder.thread];
    }
  }
}

OffCpu::Times OffCpu::TimesOf(uint32_t thread) const {
  const auto found = threads_.find(thread);
  return found != threads_.end() ? found->second.times : Times{};
}

}  // namespace perfkit::session
