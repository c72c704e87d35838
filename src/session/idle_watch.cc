// Reads how often each thread was put on a CPU, and its state, from procfs.
#include "src/session/idle_watch.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "src/proc/blocked_call.h"
#include "src/proc/threads.h"
#include "src/sys/kernel.h"

namespace perfkit::session {

uint64_t IdleWatch::Update(std::vector<ThreadRuns> threads, uint64_t now_ns) {
  const bool runs = std::ranges::any_of(threads, [](const ThreadRuns& thread) { return thread.runnable; });
  if (runs) {
    since_ns_ = UINT64_MAX;
  } else if (since_ns_ == UINT64_MAX || threads != last_) {
    since_ns_ = now_ns;
  }
  last_ = std::move(threads);
  return now_ns - std::min(now_ns, since_ns_);
}

absl::StatusOr<std::vector<ThreadRuns>> LookAtRuns(pid_t other) {
  absl::StatusOr<std::vector<pid_t>> tids = proc::ListThreads(0);
  if (!tids.ok()) return tids.status();
  std::erase_if(*tids, [&](pid_t tid) { return tid == sys::kernel().gettid() || tid == other; });
  std::vector<ThreadRuns> threads;
  for (const pid_t tid : *tids) {
    const std::optional<uint64_t> times_run = proc::ReadTimesRun(tid);
    const char state = proc::ReadState(tid);
    threads.push_back(
        {.tid = tid, .times_run = times_run.value_or(0), .runnable = !times_run || state == 'R' || state == '?'});
  }
  return threads;
}

}  // namespace perfkit::session
