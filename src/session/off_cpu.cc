// One state machine a thread.
#include "src/session/off_cpu.h"

#include <algorithm>

namespace perfkit::session {

void OffCpu::Begin(uint32_t thread, uint32_t tid, uint64_t time_ns) {
  const auto [entry, is_new] = threads_.try_emplace(thread);
  if (!is_new) return;
  State& state = entry->second;
  state.tid = tid;
  state.since_ns = time_ns;
  state.span.thread = thread;
}

// Adds the time since the last change to what the thread did until then. A phase that is not known yet is off: a thread
// that runs is sampled, or switched out first.
void OffCpu::Close(State& state, uint64_t time_ns, Emit emit) {
  const uint64_t now_ns = std::max(time_ns, state.since_ns);
  const uint64_t passed_ns = now_ns - state.since_ns;
  if (state.phase == Phase::kOn) {
    state.times.on_ns += passed_ns;
  } else if (state.phase != Phase::kEnded && passed_ns > 0) {
    state.times.off_ns += passed_ns;
    OffCpuSpan span = state.span;
    span.from_ns = state.since_ns, span.to_ns = now_ns;
    if (span.stack == ProfileStack::kRoot && state.last_stack != ProfileStack::kRoot) {
      span.stack = state.last_stack, span.quality = StackQuality::kLastKnown;
    }
    emit(span);
  }
  state.since_ns = now_ns;
}

void OffCpu::Switched(uint32_t thread, uint32_t tid, uint64_t time_ns, bool out, bool preempted, Emit emit) {
  Begin(thread, tid, time_ns);
  State& state = threads_[thread];
  if (state.phase == Phase::kEnded) return;
  if (out && state.phase == Phase::kUnknown) state.phase = Phase::kOn;
  Close(state, time_ns, emit);
  state.phase = out ? Phase::kOff : Phase::kOn;
  state.span = {.thread = thread, .preempted = out && preempted};
  state.looked = false;
}

void OffCpu::Ran(uint32_t thread) {
  const auto found = threads_.find(thread);
  if (found != threads_.end() && found->second.phase == Phase::kUnknown) found->second.phase = Phase::kOn;
}

void OffCpu::SetLastStack(uint32_t thread, uint32_t stack) {
  const auto found = threads_.find(thread);
  if (found != threads_.end()) found->second.last_stack = stack;
}

void OffCpu::End(uint32_t thread, uint64_t time_ns, Emit emit) {
  const auto found = threads_.find(thread);
  if (found == threads_.end() || found->second.phase == Phase::kEnded) return;
  Close(found->second, time_ns, emit);
  found->second.phase = Phase::kEnded;
}

void OffCpu::CutAt(uint64_t time_ns, Emit emit) {
  for (auto& [thread, state] : threads_) {
    if (state.phase != Phase::kEnded) Close(state, time_ns, emit);
  }
}

std::vector<OffCpu::Sleeper> OffCpu::ToLookAt(uint64_t before_ns) const {
  std::vector<Sleeper> sleepers;
  for (const auto& [thread, state] : threads_) {
    const bool off = state.phase == Phase::kOff || state.phase == Phase::kUnknown;
    if (off && !state.looked && !state.span.preempted && state.since_ns <= before_ns) {
      sleepers.push_back({thread, state.tid});
    }
  }
  return sleepers;
}

void OffCpu::Looked(uint32_t thread, uint32_t stack, StackQuality quality, uint32_t wait) {
  const auto found = threads_.find(thread);
  if (found == threads_.end()) return;
  State& state = found->second;
  state.looked = true;
  state.span.stack = stack, state.span.quality = quality, state.span.wait = wait;
}

OffCpu::Times OffCpu::TimesOf(uint32_t thread) const {
  const auto found = threads_.find(thread);
  return found != threads_.end() ? found->second.times : Times{};
}

}  // namespace perfkit::session
