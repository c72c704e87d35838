// A thread without a name of its own has its parent's, as the kernel has it.
#include "src/session/thread_table.h"

#include <algorithm>

namespace perfkit::session {

uint32_t ThreadTable::Add(uint32_t pid, uint32_t tid, std::string_view name, uint64_t time_ns) {
  const uint32_t index = builder_.AddThread(pid, tid, name);
  ProfileThread& thread = builder_.profile().threads[index];
  thread.first_ns = thread.last_ns = time_ns;
  by_number_[tid] = index;
  return index;
}

uint32_t ThreadTable::IndexOf(uint32_t pid, uint32_t tid, uint64_t time_ns) {
  const auto found = by_number_.find(tid);
  const uint32_t index = found != by_number_.end() ? found->second : Add(pid, tid, "", time_ns);
  ProfileThread& thread = builder_.profile().threads[index];
  thread.last_ns = std::max(thread.last_ns, time_ns);
  return index;
}

void ThreadTable::Forked(uint32_t pid, uint32_t tid, uint32_t parent_tid, uint64_t time_ns) {
  if (const auto known = by_number_.find(tid); known != by_number_.end() && !ended_.contains(known->second)) return;
  const auto parent = by_number_.find(parent_tid);
  const Profile& profile = builder_.profile();
  Add(pid, tid, parent != by_number_.end() ? std::string(profile.strings[profile.threads[parent->second].name]) : "",
      time_ns);
}

void ThreadTable::Renamed(uint32_t pid, uint32_t tid, std::string_view name, uint64_t time_ns) {
  const uint32_t index = IndexOf(pid, tid, time_ns);
  const uint32_t text = builder_.String(name);
  builder_.profile().threads[index].name = text;
}

void ThreadTable::Exited(uint32_t pid, uint32_t tid, uint64_t time_ns) { ended_.insert(IndexOf(pid, tid, time_ns)); }

}  // namespace perfkit::session
