// Threads are identified by their tids, and named at once, because they may end before their first record is read.
#include "src/session/listed_threads.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "src/proc/threads.h"

namespace perfkit::session {

absl::StatusOr<std::vector<ListedThread>> FindThreads(std::span<const pid_t> tids) {
  std::vector<ListedThread> threads;
  for (const pid_t tid : tids) {
    absl::StatusOr<std::string> name = proc::ThreadName(0, tid);
    if (!name.ok()) {
      return absl::Status(name.status().code(),
                          absl::StrFormat("cannot profile thread %d: %s. Remedy: list only threads of this process in "
                                          "SessionOptions::threads (gettid), and start the session before they end",
                                          tid, name.status().message()));
    }
    const auto number = static_cast<uint32_t>(tid);
    const bool is_known = std::ranges::any_of(threads, [&](const ListedThread& one) { return one.tid == number; });
    if (!is_known) threads.push_back({.tid = number, .name = *std::move(name)});
  }
  return threads;
}

}  // namespace perfkit::session
