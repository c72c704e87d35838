// Remembers stacks by thread, within a maximum size, and finds calls in them by CFA and pc. A call that still runs has
// the same CFA and the same callers as when an earlier stack saw it, so the callers of a stack that was cut off are
// those of the earlier one from that call on. A call that has returned may have been repeated from elsewhere: measured,
// nearly all wrong completions came from such calls. So for these, several remembered stacks have to agree.
#include "src/unwind/dwarf/sampled/stack_stitcher.h"

#include <algorithm>

namespace perfkit::unwind {
namespace {

using Calls = std::span<const KnownCall>;

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

// Returns the number of calls whose CFA is at most `cfa`. CFAs increase outwards, except across a signal handler on an
// alternate stack; there a call may be missed.
size_t CountUpTo(Calls stack, uint64_t cfa) {
  const auto end =
      std::partition_point(stack.begin(), stack.end(), [cfa](const KnownCall& call) { return call.cfa <= cfa; });
  return static_cast<size_t>(end - stack.begin());
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
  for (const Stack& stack : thread.stacks) bytes += stack.calls.capacity() * sizeof(KnownCall);
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
  const size_t had = stack.calls.capacity();
  if (calls.size() > had) {
    const size_t more = (calls.size() - had) * sizeof(KnownCall);
    if (!MakeRoom(task.tid, more)) return;
    bytes_ += more;
    stack = Stack();
    stack.calls.reserve(calls.size());
  }
  stack.calls.assign(calls.begin(), calls.end());
  stack.alive = 0;
  thread.next = (thread.next + 1) % kStacks;
  thread.used = ++clock_;
}

// Compares the calls of each remembered stack, from outside inwards, as far as the stack of now is known. The first one
// that is not in it has returned, or has gone on to another place: then those inside of it have returned.
void StackStitcher::Observe(TaskId task, Calls calls) {
  const auto found = threads_.find(task.tid);
  if (found == threads_.end() || found->second.pid != task.pid || calls.empty()) return;
  const Calls with_cfa = calls.back().cfa == KnownCall::kNoCfa ? calls.first(calls.size() - 1) : calls;
  if (with_cfa.empty()) return;
  for (Stack& stack : found->second.stacks) {
    size_t alive = CountUpTo(stack.calls, with_cfa.back().cfa), now = with_cfa.size();
    while (alive > stack.alive) {
      const KnownCall& before = stack.calls[alive - 1];
      while (now > 0 && with_cfa[now - 1].cfa > before.cfa) --now;
      if (now == 0 || with_cfa[now - 1].cfa != before.cfa || with_cfa[now - 1].frame.pc != before.frame.pc) break;
      --alive;
    }
    stack.alive = std::max(stack.alive, alive);
  }
}

Calls StackStitcher::Find(TaskId task, Calls calls) const {
  constexpr size_t kMany = 8, kFew = 2;  // Equal calls that suffice in one remembered stack, and in each of two.
  const auto found = threads_.find(task.tid);
  if (found == threads_.end() || found->second.pid != task.pid || calls.empty()) return {};
  Calls alive, known;
  size_t alive_same = 0, known_same = 0, agreeing = 0;
  bool is_alive = false, is_known = true;
  for (const Stack& stack : found->second.stacks) {
    const size_t outside = CountUpTo(stack.calls, calls.back().cfa);
    if (outside == 0 || outside == stack.calls.size()) continue;
    const size_t same = CountSame(Calls(stack.calls).first(outside), calls);
    if (same == 0) continue;
    const Calls outer = Calls(stack.calls).subspan(outside);
    if (outside > stack.alive && same >= alive_same) {
      is_alive = same > alive_same || (is_alive && SayTheSame(outer, alive));
      if (same > alive_same) alive = outer;
      alive_same = same;
    }
    is_known = is_known && (known.empty() || SayTheSame(outer, known));
    if (known.empty()) known = outer;
    known_same = std::max(known_same, same);
    if (same >= std::min(kFew, calls.size())) ++agreeing;
  }
  if (is_alive) return alive;
  return is_known && (known_same >= kMany || agreeing >= 2) ? known : Calls();
}

}  // namespace perfkit::unwind
