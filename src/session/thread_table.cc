// As in the kernel, a thread without a name of its own has its parent's.
//
// A program may start threads for as long as it runs. So ended threads are not kept for ever: the older ones become
// sums by name, and new threads get their entries of Profile::threads.
#include "src/session/thread_table.h"

#include <algorithm>
#include <string>
#include <utility>

namespace perfkit::session {

uint32_t ThreadTable::NewRow(const ProfileThread& thread) {
  std::vector<ProfileThread>& threads = builder_.profile().threads;
  if (unused_.empty()) {
    threads.push_back(thread);
    return static_cast<uint32_t>(threads.size() - 1);
  }
  const uint32_t index = unused_.back();
  unused_.pop_back();
  threads[index] = thread;
  return index;
}

void ThreadTable::End(Entry& entry, uint64_t time_ns) {
  if (entry.ended) return;
  uint64_t& last_ns = builder_.profile().threads[entry.index].last_ns;
  last_ns = std::max(last_ns, time_ns);
  entry.ended = true;
  entry.end_ns = last_ns;
  if (std::ranges::find(listed_, entry.index) == listed_.end()) ended_.push_back(entry.index);
}

uint32_t ThreadTable::Add(uint32_t pid, uint32_t tid, std::string_view name, uint64_t time_ns) {
  const auto [entry, is_new] = by_number_.try_emplace(tid);
  if (!is_new) End(entry->second, 0);  // the tid is another thread's by now
  kept_names_.erase(tid);
  const uint32_t text = builder_.String(name);
  const uint32_t index = NewRow({.pid = pid, .tid = tid, .name = text, .first_ns = time_ns, .last_ns = time_ns});
  entry->second = {.index = index};
  return index;
}

std::string ThreadTable::FirstNameOf(uint32_t pid, uint32_t tid) const {
  const auto kept = kept_names_.find(tid);
  if (kept != kept_names_.end() && kept->second.pid == pid) return kept->second.name;
  return name_of_ != nullptr ? name_of_(pid, tid) : "";
}

void ThreadTable::List(uint32_t pid, uint32_t tid, std::string_view name, uint64_t time_ns) {
  listed_.push_back(Add(pid, tid, name, time_ns));
}

uint32_t ThreadTable::IndexOf(uint32_t pid, uint32_t tid, uint64_t time_ns) {
  const auto found = by_number_.find(tid);
  const auto add = [&] { return Add(pid, tid, FirstNameOf(pid, tid), time_ns); };
  if (found == by_number_.end()) return add();
  // The same tid means the same thread, unless it is another process's, or that thread had ended before.
  const Entry entry = found->second;
  ProfileThread& thread = builder_.profile().threads[entry.index];
  if (thread.pid != pid || (entry.ended && time_ns > entry.end_ns)) return add();
  thread.last_ns = std::max(thread.last_ns, time_ns);
  return entry.index;
}

std::optional<uint32_t> ThreadTable::Find(uint32_t tid) const {
  const auto found = by_number_.find(tid);
  if (found == by_number_.end() || found->second.ended) return std::nullopt;
  return found->second.index;
}

void ThreadTable::Forked(uint32_t pid, uint32_t tid, uint32_t parent_tid, uint64_t time_ns) {
  const Profile& profile = builder_.profile();
  const auto known = by_number_.find(tid);
  if (known != by_number_.end() && !known->second.ended && profile.threads[known->second.index].pid == pid) return;
  const auto parent = by_number_.find(parent_tid);
  const auto kept = kept_names_.find(parent_tid);
  std::string name;
  if (parent != by_number_.end()) {
    name = profile.strings[profile.threads[parent->second.index].name];
  } else if (kept != kept_names_.end()) {
    name = kept->second.name;
  }
  Add(pid, tid, name, time_ns);
}

void ThreadTable::Existed(uint32_t pid, uint32_t tid, std::string_view name) {
  const auto known = by_number_.find(tid);
  if (known != by_number_.end() && builder_.profile().threads[known->second.index].pid == pid) return;
  kept_names_[tid] = {pid, std::string(name)};
}

void ThreadTable::Renamed(uint32_t pid, uint32_t tid, std::string_view name, uint64_t time_ns) {
  const uint32_t index = IndexOf(pid, tid, time_ns);
  if (builder_.profile().threads[index].is_sum()) return;  // it keeps its name
  const uint32_t text = builder_.String(name);
  builder_.profile().threads[index].name = text;
}

std::optional<uint32_t> ThreadTable::Exited(uint32_t pid, uint32_t tid, uint64_t time_ns) {
  const auto found = by_number_.find(tid);
  if (found == by_number_.end() || builder_.profile().threads[found->second.index].pid != pid) return std::nullopt;
  End(found->second, time_ns);
  return found->second.index;
}

uint32_t ThreadTable::SumOf(uint32_t name, uint32_t pid) {
  std::vector<ProfileThread>& threads = builder_.profile().threads;
  const auto find = [&](uint32_t wanted) {
    return std::find_if(sums_.begin(), sums_.end(), [&](uint32_t sum) { return threads[sum].name == wanted; });
  };
  auto found = find(name);
  // There may be any number of names ("job-123456"). Beyond kMaxSums, all others share one sum.
  if (found == sums_.end() && sums_.size() >= kMaxSums) found = find(name = 0);
  if (found != sums_.end()) {
    if (threads[*found].pid != pid) threads[*found].pid = 0;
    return *found;
  }
  const auto tid = static_cast<uint32_t>(ProfileThread::kFirstSum + sums_.size());
  sums_.push_back(NewRow({.pid = pid, .tid = tid, .name = name, .first_ns = UINT64_MAX}));
  return sums_.back();
}

void ThreadTable::AddToSum(uint32_t sum, uint32_t thread) {
  std::vector<ProfileThread>& threads = builder_.profile().threads;
  ++threads[sum].ended;
  threads[sum].first_ns = std::min(threads[sum].first_ns, threads[thread].first_ns);
  threads[sum].last_ns = std::max(threads[sum].last_ns, threads[thread].last_ns);
  unused_.push_back(thread);
  ++retired_;
}

std::vector<uint32_t> ThreadTable::Retire() {
  if (ended_.size() <= kMaxEnded) return {};
  const Profile& profile = builder_.profile();
  std::vector<std::pair<uint32_t, uint32_t>> moves;
  for (; ended_.size() > kMaxEnded / 2; ended_.pop_front()) {
    const ProfileThread thread = profile.threads[ended_.front()];
    moves.emplace_back(ended_.front(), SumOf(thread.name, thread.pid));
  }
  std::vector<uint32_t> renamed(profile.threads.size());
  for (uint32_t i = 0; i < renamed.size(); ++i) renamed[i] = i;
  for (const auto& [thread, sum] : moves) {
    renamed[thread] = sum;
    AddToSum(sum, thread);
  }
  for (auto& [tid, entry] : by_number_) entry.index = renamed[entry.index];
  ForgetLate();
  return renamed;
}

// Forgets the tids of the earlier half of the threads in sums if they are too many.
void ThreadTable::ForgetLate() {
  const std::vector<ProfileThread>& threads = builder_.profile().threads;
  std::vector<uint64_t> ends_ns;
  for (const auto& [tid, entry] : by_number_) {
    if (threads[entry.index].is_sum()) ends_ns.push_back(entry.end_ns);
  }
  if (ends_ns.size() <= kMaxLate) return;
  const auto middle = ends_ns.begin() + static_cast<ptrdiff_t>(ends_ns.size() / 2);
  std::nth_element(ends_ns.begin(), middle, ends_ns.end());
  std::erase_if(by_number_, [&](const auto& known) {
    return threads[known.second.index].is_sum() && known.second.end_ns < *middle;
  });
}

}  // namespace perfkit::session
