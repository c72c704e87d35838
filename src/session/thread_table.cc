// A thread without a name of its own has its parent's, as the kernel has it.
#include "src/session/thread_table.h"

#include <algorithm>
#include <string>

namespace perfkit::session {

uint32_t ThreadTable::Add(uint32_t pid, uint32_t tid, std::string_view name, uint64_t time_ns) {
  const uint32_t index = builder_.AddThread(pid, tid, name);
  ProfileThread& thread = builder_.profile().threads[index];
  thread.first_ns = thread.last_ns = time_ns;
  by_number_[tid] = {.index = index};
  return index;
}

uint32_t ThreadTable::IndexOf(uint32_t pid, uint32_t tid, uint64_t time_ns) {
  const auto found = by_number_.find(tid);
  if (found == by_number_.end()) return Add(pid, tid, "", time_ns);
  const Entry entry = found->second;
  ProfileThread& thread = builder_.profile().threads[entry.index];
  if (thread.pid != pid || (entry.ended && time_ns > thread.last_ns)) return Add(pid, tid, "", time_ns);
  thread.last_ns = std::max(thread.last_ns, time_ns);
  return entry.index;
}

void ThreadTable::Forked(uint32_t pid, uint32_t tid, uint32_t parent_tid, uint64_t time_ns) {
  const Profile& profile = builder_.profile();
  const auto known = by_number_.find(tid);
  if (known != by_number_.end() && !known->second.ended && profile.threads[known->second.index].pid == pid) return;
  const auto parent = by_number_.find(parent_tid);
  const bool has_parent = parent != by_number_.end();
  Add(pid, tid, has_parent ? std::string(profile.strings[profile.threads[parent->second.index].name]) : "", time_ns);
}

void ThreadTable::Renamed(uint32_t pid, uint32_t tid, std::string_view name, uint64_t time_ns) {
  const uint32_t index = IndexOf(pid, tid, time_ns);
  const uint32_t text = builder_.String(name);
  builder_.profile().threads[index].name = text;
}

std::optional<uint32_t> ThreadTable::Exited(uint32_t pid, uint32_t tid, uint64_t time_ns) {
  const auto found = by_number_.find(tid);
  if (found == by_number_.end() || builder_.profile().threads[found->second.index].pid != pid) return std::nullopt;
  if (!found->second.ended) {
    ProfileThread& thread = builder_.profile().threads[found->second.index];
    thread.last_ns = std::max(thread.last_ns, time_ns);
    found->second.ended = true;
  }
  return found->second.index;
}

}  // namespace perfkit::session
