// Samples wait by thread and event, in the order in which they were taken. A stack finds its sample by its first pc,
// searching backwards, because the latest sample at that pc is the one that the thread has just returned from. Samples
// before it will have no stack any more: stacks of a thread come in the order of its samples.
#include "src/session/stack_matcher.h"

#include <algorithm>

namespace perfkit::session {
namespace {

// A call of the kernel that a signal interrupts may be made again: then the thread returns to the call itself, not
// after it. Two bytes on x86-64 (syscall), four on aarch64 (svc).
bool ReturnsTo(const PendingSample& sample, uint64_t first_pc) {
#if defined(__x86_64__)
  constexpr uint64_t kCallBytes = 2;
#else
  constexpr uint64_t kCallBytes = 4;
#endif
  if (sample.user_pc == first_pc) return true;
  return sample.kernel_pc != 0 && sample.user_pc == first_pc + kCallBytes;
}

}  // namespace

StackMatcher::Pending& StackMatcher::PendingOf(uint32_t thread, uint32_t event) {
  std::vector<Pending>& events = pending_[thread];
  if (event >= events.size()) events.resize(event + 1);
  return events[event];
}

void StackMatcher::EmitFirst(Pending& pending, size_t count, Emit emit) {
  for (size_t i = 0; i < count; ++i) emit(pending[i], false);
  pending.erase(pending.begin(), pending.begin() + static_cast<ptrdiff_t>(count));
}

void StackMatcher::AddSample(uint32_t thread, uint32_t event, const PendingSample& sample, Emit emit) {
  Pending& pending = PendingOf(thread, event);
  if (pending.size() >= kMaxPending) EmitFirst(pending, kMaxPending / 2, emit);
  pending.push_back(sample);
}

bool StackMatcher::AddStack(uint32_t thread, uint32_t event, uint64_t first_pc, Emit emit) {
  Pending& pending = PendingOf(thread, event);
  size_t end = pending.size();
  while (end > 0 && !ReturnsTo(pending[end - 1], first_pc)) --end;
  if (end == 0) return false;
  size_t begin = end - 1;
  while (begin > 0 && pending[begin].sample.samples == 0) --begin;  // followers
  const bool in_kernel = pending[begin].kernel_pc != 0;
  // All samples during one call of the kernel share the stack, because their signals were coalesced.
  while (in_kernel && begin > 0 && pending[begin - 1].kernel_pc != 0 && ReturnsTo(pending[begin - 1], first_pc))
    --begin;
  for (size_t i = 0; i < end; ++i) emit(pending[i], i >= begin);
  pending.erase(pending.begin(), pending.begin() + static_cast<ptrdiff_t>(end));
  return true;
}

void StackMatcher::End(uint32_t thread, Emit emit) {
  const auto found = pending_.find(thread);
  if (found == pending_.end()) return;
  for (Pending& pending : found->second) EmitFirst(pending, pending.size(), emit);
  pending_.erase(found);
}

void StackMatcher::EmitIf(absl::FunctionRef<bool(const PendingSample& sample)> is_wanted, Emit emit) {
  for (auto& [thread, events] : pending_) {
    for (Pending& pending : events) {
      std::erase_if(pending, [&](const PendingSample& sample) {
        if (!is_wanted(sample)) return false;
        emit(sample, false);
        return true;
      });
    }
  }
  std::erase_if(pending_, [](const auto& entry) {
    const auto is_empty = [](const Pending& pending) { return pending.empty(); };
    return std::all_of(entry.second.begin(), entry.second.end(), is_empty);
  });
}

void StackMatcher::ForEach(absl::FunctionRef<void(const PendingSample& sample)> visit) const {
  for (const auto& [thread, events] : pending_) {
    for (const Pending& pending : events) {
      for (const PendingSample& sample : pending) visit(sample);
    }
  }
}

}  // namespace perfkit::session
