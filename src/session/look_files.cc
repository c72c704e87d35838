// The files that were used least recently make room. What a forked child reads changes under a ForkBlocker.
#include "src/session/look_files.h"

#include <algorithm>

namespace perfkit::session {

const proc::ThreadFiles& LookFiles::Of(pid_t tid) {
  auto entry = std::ranges::find(entries_, tid, [](const Entry& one) { return one.files.tid(); });
  if (entry == entries_.end()) {
    entry = std::ranges::min_element(entries_, {}, &Entry::last_use);
    const sys::ForkBlocker fork_blocker;
    entry->files = proc::ThreadFiles(tid);
  }
  entry->last_use = ++uses_;
  return entry->files;
}

void LookFiles::Forget(pid_t tid) {
  const auto entry = std::ranges::find(entries_, tid, [](const Entry& one) { return one.files.tid(); });
  if (entry == entries_.end()) return;
  const sys::ForkBlocker fork_blocker;
  *entry = {};
}

void LookFiles::CloseAll() {
  for (Entry& entry : entries_) entry = {};
}

}  // namespace perfkit::session
