// Looks at all threads, then names what it found: names are slow, and a thread may run at any time. A look is valid
// only if the thread did not run meanwhile (blocked_look.h); one that ran is looked at again, a few times. Every gap
// has its reason in `missing`, for a reader of the printed text.
#include "perfkit/blocked_threads.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "perfkit/symbolizer.h"
#include "src/proc/blocked_call.h"
#include "src/proc/threads.h"
#include "src/session/blocked_look.h"
#include "src/session/stack_hooks.h"
#include "src/sys/files.h"
#include "src/sys/kernel.h"

namespace perfkit {
namespace {

constexpr int kLooks = 3;  // at a thread that runs in between
constexpr uint32_t kMinFrames = 1, kMaxFrames = 65'536;

absl::Status CannotList(const absl::Status& error) {
  const std::string_view remedy = absl::IsResourceExhausted(error)
                                      ? sys::kMoreDescriptors
                                      : "mount /proc where this process can see it";
  return absl::Status(error.code(),
                      absl::StrFormat("cannot list the threads of this process in /proc/self/task (%s). Remedy: %s.",
                                      error.message(), remedy));
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
    std::optional<session::BlockedThread> blocked;
    for (int i = 0; i < kLooks && !blocked && readable_.ok(); ++i) {
      blocked = session::LookAtBlocked(pid_, look.tid, unwinder_.get(), frames_);
    }
    look.state = proc::ReadState(tid);
    if (blocked) {
      Fill(*blocked, look);
    } else {
      look.missing = WhyNotBlocked(tid, look.state);
    }
    return look;
  }

 private:
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
      look.missing = absl::StrFormat("its stack ends early: %s", StackEndName(look.end));
    }
  }

  std::string WhyNotBlocked(pid_t tid, char state) const {
    if (!readable_.ok()) {
      return absl::StrFormat("what it waits for cannot be read: %s", readable_.message());
    }
    if (state == '?' || state == 'Z' || state == 'X') return "it has ended";
    // The file says "running" for a thread that is on a CPU or waits for one.
    if (state == 'R' || !proc::ReadBlockedCall(tid)) return "it runs";
    return absl::StrFormat("it ran during each of %d looks", kLooks);
  }

  uint32_t pid_;
  absl::Status readable_, maps_;
  std::vector<StackFrame> frames_;
  std::unique_ptr<StackUnwinder> unwinder_;
};

// All stacks at once, so that each file is read once.
void NameCalls(uint32_t pid, bool lines, std::span<ThreadStatus> threads) {
  const StackHooks* const hooks = &StackHookTable;
  Symbolizer symbolizer({.lines = lines && hooks != nullptr ? hooks->lines : nullptr});
  if (!symbolizer.AddProcess(static_cast<pid_t>(pid)).ok()) return;
  std::vector<CodeLocation> places;
  for (const ThreadStatus& thread : threads) {
    for (const StackFrame& frame : thread.frames) places.push_back(symbolizer.Locate(pid, frame.code()));
  }
  std::vector<std::vector<ThreadStatus::Call>> calls(places.size());
  symbolizer.ResolveAll(places, [&](const ResolvedLocation& resolved) {
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
  size_t place = 0;
  for (ThreadStatus& thread : threads) {
    for (uint32_t frame = 0; frame < thread.frames.size(); ++frame) {
      for (ThreadStatus::Call& call : calls[place++]) {
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

std::string FormatThread(const ThreadStatus& thread) {
  std::string text = absl::StrFormat("thread %d \"%s\" %s", thread.tid, thread.name, StateText(thread.state));
  if (thread.blocked) text += ": " + thread.wait;
  text += "\n";
  for (const ThreadStatus::Call& call : thread.calls) text += absl::StrFormat("  #%d %s\n", call.frame, FormatCall(call));
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
  if (options.names) NameCalls(pid, options.lines, threads);
  return threads;
}

std::string FormatBlockedThreads(std::span<const ThreadStatus> threads) {
  std::string text;
  // The blocked ones first: they are why a hanging program is looked at.
  for (const bool blocked : {true, false}) {
    for (const ThreadStatus& thread : threads) {
      if (thread.blocked == blocked) text += FormatThread(thread);
    }
  }
  return text;
}

}  // namespace perfkit
