// Looks at all threads before it looks up names, because names are slow, and a thread may run at any time. A look is
// valid only if the thread did not run meanwhile (blocked_look.h); one that ran is looked at again, a few times.
// `missing` says why something is not known.
#include "perfkit/blocked_threads.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "perfkit/symbolizer.h"
#include "src/base/one_line.h"
#include "src/proc/blocked_call.h"
#include "src/proc/threads.h"
#include "src/session/blocked_look.h"
#include "src/session/deadlocks.h"
#include "src/session/lock_holder.h"
#include "src/session/stack_hooks.h"
#include "src/sys/files.h"
#include "src/sys/kernel.h"

namespace perfkit {
namespace {

constexpr int kLooks = 3;  // maximum, at a thread that runs in between
constexpr uint32_t kMinFrames = 1, kMaxFrames = 65'536;

absl::Status CannotList(const absl::Status& error) {
  const std::string_view remedy =
      absl::IsResourceExhausted(error) ? sys::kMoreDescriptors : "mount /proc where this process can see it";
  return absl::Status(error.code(),
                      absl::StrFormat("cannot list the threads of this process in /proc/self/task (%s). Remedy: %s.",
                                      error.message(), remedy));
}

bool HasEnded(char state) { return state == '?' || state == 'Z' || state == 'X'; }

std::vector<std::vector<size_t>> FindHolderCycles(std::span<const ThreadStatus> threads) {
  std::vector<session::LockWait> waits;
  for (const ThreadStatus& thread : threads) waits.push_back({thread.tid, thread.holder});
  return session::FindCycles(waits);
}

class Looker {
 public:
  Looker(uint32_t pid, uint32_t max_frames)
      : pid_(pid), readable_(proc::CanReadBlockedCalls()), frames_(std::clamp(max_frames, kMinFrames, kMaxFrames)) {
    const StackHooks* const hooks = &StackHookTable;
    if (hooks == nullptr) return;
    unwinder_ = hooks->unwinder(0);  // 0: one look has no earlier stacks to stitch from
    maps_ = unwinder_->AddProcess(pid);
  }

  ThreadStatus Look(pid_t tid) {
    ThreadStatus look{.tid = static_cast<uint32_t>(tid), .name = proc::ThreadName(0, tid).value_or("")};
    if (tid == sys::kernel().gettid()) {
      look.state = 'R';
      look.missing = "it runs, and looks at the others";
      return look;
    }
    const proc::ThreadFiles files(tid);
    std::optional<session::BlockedThread> blocked;
    for (int i = 0; i < kLooks && !blocked && readable_.ok(); ++i) {
      blocked = session::LookAtBlocked(pid_, files, unwinder_.get(), frames_);
    }
    look.state = proc::ReadState(tid);
    if (blocked) {
      Fill(*blocked, look);
      FindHolder(*blocked, look);
      blocked_.emplace(look.tid, *std::move(blocked));
    } else {
      look.missing = WhyNotBlocked(tid, look.state);
    }
    return look;
  }

  // Finds deadlocks among the threads. Checks the threads of each cycle twice more. The first round finds that each
  // lock is still held by the next thread. The second finds that no thread had run by then.
  void FindDeadlocks(std::span<ThreadStatus> threads) const {
    for (const std::vector<size_t>& cycle : FindHolderCycles(threads)) {
      const auto all_stay = [&] {
        return std::ranges::all_of(cycle,
                                   [&](size_t i) { return blocked_.at(threads[i].tid).IsUnchanged(threads[i].tid); });
      };
      const bool is_deadlock = all_stay() && all_stay();
      for (const size_t i : cycle) threads[i].deadlocked = is_deadlock;
    }
  }

 private:
  // If the holder has ended and the thread still waits, the lock was not released.
  static void FindHolder(const session::BlockedThread& blocked, ThreadStatus& look) {
    look.holder = blocked.holder.value_or(0);
    look.holder_gone = look.holder != 0 && HasEnded(proc::ReadState(static_cast<pid_t>(look.holder)));
    if (look.holder_gone && !blocked.IsUnchanged(look.tid)) look.holder = 0, look.holder_gone = false;
  }

  void Fill(const session::BlockedThread& blocked, ThreadStatus& look) const {
    look.blocked = true;
    look.syscall = blocked.call.syscall;
    look.arguments = blocked.call.arguments;
    look.wait = blocked.wait;
    look.at_ns = blocked.at_ns;
    look.frames.assign(frames_.begin(), frames_.begin() + blocked.stack.frames);
    look.end = blocked.stack.end;
    if (unwinder_ == nullptr) {
      look.missing = "its callers are not known: the component perfkit::dwarf is not linked";
    } else if (!maps_.ok()) {
      look.missing = "its callers are not known: " + std::string(maps_.message());
    } else if (look.end != StackEnd::kRoot) {
      // Of a sleeping thread only pc and sp are known.
      const bool no_fp = look.end == StackEnd::kNoProgress;
      look.missing = absl::StrFormat("its stack ends early: %s%s", StackEndName(look.end),
                                     no_fp ? ", as where the frame pointer would lead on, which is not known" : "");
    }
  }

  std::string WhyNotBlocked(pid_t tid, char state) const {
    if (!readable_.ok()) {
      return absl::StrFormat("what it waits for cannot be read: %s", readable_.message());
    }
    if (HasEnded(state)) return "it has ended";
    // The file says "running" for a thread that is on a CPU or waits for one.
    if (state == 'R' || !proc::ReadBlockedCall(tid)) return "it runs";
    return absl::StrFormat("it ran during each of %d looks", kLooks);
  }

  uint32_t pid_;
  absl::Status readable_, maps_;
  std::vector<StackFrame> frames_;
  std::unique_ptr<StackUnwinder> unwinder_;
  std::map<uint32_t, session::BlockedThread> blocked_;  // by tid
};

// Forgets holders unless the stack of the waiting thread proves that it waits for a lock, and the deadlocks with them.
void KeepProven(Symbolizer& symbolizer, uint32_t pid, std::span<ThreadStatus> threads) {
  for (ThreadStatus& thread : threads) {
    if (thread.holder == 0) continue;
    std::vector<session::NamedCall> calls;
    for (size_t i = 0; i < std::min(thread.frames.size(), session::kProvingFrames); ++i) {
      const Symbol symbol = symbolizer.Resolve(pid, thread.frames[i].code());
      calls.push_back({symbol.function, symbol.module});
    }
    if (session::ProvesLock(sys::FutexLockOf(thread.syscall, thread.arguments), calls)) continue;
    thread.holder = 0;
    thread.holder_gone = false;
  }
  std::vector<bool> in_cycle(threads.size());
  for (const std::vector<size_t>& cycle : FindHolderCycles(threads)) {
    for (const size_t i : cycle) in_cycle[i] = true;
  }
  for (size_t i = 0; i < threads.size(); ++i) threads[i].deadlocked = threads[i].deadlocked && in_cycle[i];
}

// Names all stacks at once, so that each file is read once.
void NameCalls(Symbolizer& symbolizer, uint32_t pid, std::span<ThreadStatus> threads) {
  std::vector<CodeLocation> locations;
  for (const ThreadStatus& thread : threads) {
    for (const StackFrame& frame : thread.frames) locations.push_back(symbolizer.Locate(pid, frame.code()));
  }
  std::vector<std::vector<ThreadStatus::Call>> calls(locations.size());
  symbolizer.ResolveAll(locations, [&](const ResolvedLocation& resolved) {
    for (const SourceFrame& frame : resolved.frames) {
      calls[resolved.index].push_back({.function = std::string(frame.function),
                                       .module = std::string(resolved.symbol.module),
                                       .offset = resolved.symbol.offset,
                                       .file = std::string(frame.file),
                                       .line = frame.line,
                                       .inlined = frame.inlined});
    }
    return true;
  });
  size_t index = 0;
  for (ThreadStatus& thread : threads) {
    for (uint32_t frame = 0; frame < thread.frames.size(); ++frame) {
      for (ThreadStatus::Call& call : calls[index++]) {
        call.frame = frame;
        thread.calls.push_back(std::move(call));
      }
    }
  }
}

std::string_view StateText(char state) {
  switch (state) {
    case 'R': return "runs";
    case 'S': return "sleeps";
    case 'D': return "sleeps, and no signal wakes it";
    case 'T':
    case 't': return "is stopped";
    case 'Z':
    case 'X': return "has ended";
    default: return "state unknown";
  }
}

std::string FormatCall(const ThreadStatus::Call& call) {
  const std::string module = call.module.substr(call.module.rfind('/') + 1);
  std::string text = call.function.empty() ? absl::StrFormat("[%s]+0x%x", module, call.offset) : call.function;
  if (call.inlined) text += " (inlined)";
  if (!call.file.empty()) return text + absl::StrFormat("  %s:%d", call.file, call.line);
  return call.function.empty() ? text : text + "  " + module;
}

// "1234 \"worker\"".
std::string ThreadText(std::span<const ThreadStatus> threads, uint32_t tid) {
  const auto found = std::ranges::find(threads, tid, &ThreadStatus::tid);
  return found != threads.end() ? absl::StrFormat("%d \"%s\"", tid, base::OneLine(found->name))
                                : absl::StrFormat("%d", tid);
}

std::string HolderText(std::span<const ThreadStatus> threads, const ThreadStatus& thread) {
  if (thread.holder == 0) return "";
  return absl::StrFormat(", held by thread %s%s", ThreadText(threads, thread.holder),
                         thread.holder_gone ? ", which is gone" : "");
}

// Describes each deadlock once.
std::string DeadlockText(std::span<const ThreadStatus> threads) {
  std::string text;
  for (const std::vector<size_t>& cycle : FindHolderCycles(threads)) {
    if (!threads[cycle[0]].deadlocked) continue;
    text += "deadlock: thread " + ThreadText(threads, threads[cycle[0]].tid);
    for (const size_t i : cycle) {
      absl::StrAppendFormat(&text, "%s waits for the lock that %s holds", i == cycle[0] ? "" : ", which",
                            ThreadText(threads, threads[i].holder));
    }
    text += "\n";
  }
  return text;
}

std::string FormatThread(std::span<const ThreadStatus> threads, const ThreadStatus& thread) {
  std::string text =
      absl::StrFormat("thread %d \"%s\" %s", thread.tid, base::OneLine(thread.name), StateText(thread.state));
  if (thread.blocked) text += ": " + thread.wait + HolderText(threads, thread);
  text += "\n";
  for (const ThreadStatus::Call& call : thread.calls)
    text += absl::StrFormat("  #%d %s\n", call.frame, FormatCall(call));
  for (size_t i = 0; thread.calls.empty() && i < thread.frames.size(); ++i) {
    text += absl::StrFormat("  #%d 0x%x\n", i, thread.frames[i].pc);
  }
  if (!thread.missing.empty()) text += "  (" + thread.missing + ")\n";
  return text;
}

}  // namespace

absl::StatusOr<std::vector<ThreadStatus>> BlockedThreads(const BlockedThreadsOptions& options) {
  const absl::StatusOr<std::vector<pid_t>> tids = proc::ListThreads(0);
  if (!tids.ok()) return CannotList(tids.status());
  const auto pid = static_cast<uint32_t>(sys::kernel().getpid());
  Looker looker(pid, options.max_frames);
  std::vector<ThreadStatus> threads;
  for (const pid_t tid : *tids) threads.push_back(looker.Look(tid));
  looker.FindDeadlocks(threads);
  const bool any_holder = std::ranges::any_of(threads, [](const ThreadStatus& thread) { return thread.holder != 0; });
  if (!options.names && !any_holder) return threads;
  const StackHooks* const hooks = &StackHookTable;
  Symbolizer symbolizer({.lines = options.lines && hooks != nullptr ? hooks->lines : nullptr});
  const bool is_mapped = symbolizer.AddProcess(static_cast<pid_t>(pid)).ok();
  KeepProven(symbolizer, pid, threads);
  if (options.names && is_mapped) NameCalls(symbolizer, pid, threads);
  return threads;
}

std::string FormatBlockedThreads(std::span<const ThreadStatus> threads) {
  std::string text = DeadlockText(threads);
  // Blocked threads come first: they usually explain why a program hangs.
  for (const bool blocked : {true, false}) {
    for (const ThreadStatus& thread : threads) {
      if (thread.blocked == blocked) text += FormatThread(threads, thread);
    }
  }
  return text;
}

}  // namespace perfkit
