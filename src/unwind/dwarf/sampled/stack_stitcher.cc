// Remembers stacks by thread, within a maximum size, and finds calls in them by CFA. A call that is still running has
// the same CFA and the same callers as when an earlier stack saw it, so the callers of a stack that was cut off are
// those of the earlier one from that call on. If several earlier stacks disagree about them, none is taken.
#include "src/unwind/dwarf/sampled/stack_stitcher.h"

#include <algorithm>

namespace perfkit::unwind {
namespace {

using Calls = std::span<const KnownCall>;

// Returns the index of the call with this CFA; the stack's size if there is none. CFAs increase outwards, except across
// a signal handler on an alternate stack; there a call may be missed.
size_t FindCfa(Calls stack, uint64_t cfa) {
  const auto at =
      std::partition_point(stack.begin(), stack.end(), [cfa](const KnownCall& call) { return call.cfa < cfa; });
  return at != stack.end() && at->cfa == cfa ? static_cast<size_t>(at - stack.begin()) : stack.size();
}

// Returns how many calls are equal in both stacks, counted from their outermost calls inwards.
size_t CountSame(Calls a, Calls b) {
  size_t same = 0;
  while (same < std::min(a.size(), b.size())) {
    const KnownCall& left = a[a.size() - 1 - same];
    const KnownCall& right = b[b.size() - 1 - same];
    if (left.cfa != right.cfa || left.frame.pc != right.frame.pc) break;
    ++same;
  }
  return same;
}

bool SayTheSame(Calls a, Calls b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const KnownCall& left, const KnownCall& right) { return left.frame.pc == right.frame.pc; });
}

}  // namespace

void StackStitcher::Add(const RawRecord& record, const SampleLayout& layout) {
  Dispatch(
      record, layout,
      Overloaded{[&](const ForkRecord& fork) { Forget(fork.tid); }, [&](const ExitRecord& exit) { Forget(exit.tid); },
                 [&](const CommRecord& comm) {
                   if (comm.exec) ForgetProcess(comm.pid);
                 }});
}

size_t StackStitcher::BytesOf(const Thread& thread) {
  size_t bytes = sizeof(Thread) + thread.stacks.capacity() * sizeof(Stack);
  for (const Stack& stack : thread.stacks) bytes += stack.capacity() * sizeof(KnownCall);
  return bytes;
}

void StackStitcher::Forget(uint32_t tid) {
  const auto found = threads_.find(tid);
  if (found == threads_.end()) return;
  bytes_ -= BytesOf(found->second);
  threads_.erase(found);
}

void StackStitcher::ForgetProcess(uint32_t pid) {
  std::erase_if(threads_, [&](const auto& known) {
    if (known.second.pid != pid) return false;
    bytes_ -= BytesOf(known.second);
    return true;
  });
}

// Makes room for `bytes` more of thread `tid`: forgets the threads without a new stack for the longest time.
bool StackStitcher::MakeRoom(uint32_t tid, size_t bytes) {
  while (bytes_ + bytes > max_bytes_) {
    auto oldest = threads_.end();
    for (auto known = threads_.begin(); known != threads_.end(); ++known) {
      if (known->first == tid) continue;
      if (oldest == threads_.end() || known->second.used < oldest->second.used) oldest = known;
    }
    if (oldest == threads_.end()) return false;
    Forget(oldest->first);
  }
  return true;
}

void StackStitcher::Remember(TaskId task, Calls calls) {
  calls = calls.last(std::min(calls.size(), kMaxCalls));
  if (threads_.count(task.tid) == 0) {
    const Thread empty{.pid = task.pid, .stacks = std::vector<Stack>(kStacks)};
    if (!MakeRoom(task.tid, BytesOf(empty))) return;
    bytes_ += BytesOf(empty);
    threads_.emplace(task.tid, empty);
  }
  Thread& thread = threads_[task.tid];
  Stack& stack = thread.stacks[thread.next];
  const size_t had = stack.capacity();
  if (calls.size() > had) {
    const size_t more = (calls.size() - had) * sizeof(KnownCall);
    if (!MakeRoom(task.tid, more)) return;
    bytes_ += more;
    stack = Stack();
    stack.reserve(calls.size());
  }
  stack.assign(calls.begin(), calls.end());
  thread.next = (thread.next + 1) % kStacks;
  thread.used = ++clock_;
}

Calls StackStitcher::Find(TaskId task, Calls calls, absl::FunctionRef<bool(uint64_t, uint64_t)> same_function) const {
  const auto found = threads_.find(task.tid);
  if (found == threads_.end() || found->second.pid != task.pid || calls.empty()) return {};
  const KnownCall& wanted = calls.back();
  Calls best;
  size_t max_same = 0;
  bool agreed = false;
  for (const Stack& stack : found->second.stacks) {
    const size_t at = FindCfa(stack, wanted.cfa);
    if (at + 1 >= stack.size()) continue;
    const size_t same = CountSame(Calls(stack).first(at + 1), calls);
    const Calls outside = Calls(stack).subspan(at + 1);
    if (!best.empty() && same < max_same) continue;
    if (same == 0 && !same_function(stack[at].frame.code(), wanted.frame.code())) continue;
    agreed = best.empty() || same > max_same || (agreed && SayTheSame(outside, best));
    if (best.empty() || same > max_same) best = outside;
    max_same = same;
  }
  return agreed ? best : Calls();
}

}  // namespace perfkit::unwind
