// A sample's task is found in its thread's changes by its time, as its zone is in a ZoneTimeline; both times are of
// CLOCK_MONOTONIC. What lies between two changes is a part of a task.
#include "src/session/task_timeline.h"

#include <algorithm>
#include <deque>
#include <string>
#include <utility>

namespace perfkit::session {

using count::TaskEvent;

TaskTimeline::TaskTimeline(std::unique_ptr<count::TaskRecording> recording, ProfileBuilder& builder,
                           ThreadTable& threads, uint32_t pid, size_t max_bytes)
    : changes_(std::move(recording)), builder_(builder), table_(threads), pid_(pid), max_bytes_(max_bytes) {}

void TaskTimeline::Read(uint64_t known_ns) {
  if (!changes_.is_recording()) return;
  changes_.Read();
  FindIndexes(known_ns);
  if (changes_.bytes() <= max_bytes_) return;
  Label(builder_.profile().samples);
  forgotten_ += changes_.Forget(2);
}

void TaskTimeline::Stop(uint64_t now_ns) {
  Read(now_ns);
  Read(now_ns);  // With the gaps of threads that have ended while their logs were full.
  changes_.Stop();
}

// Finds the profile's thread of each, and the threads whose tasks are not known now.
void TaskTimeline::FindIndexes(uint64_t known_ns) {
  for (Thread& thread : changes_.threads()) {
    if (thread.owner != kNoThread || thread.first_ns > known_ns) continue;
    thread.owner = table_.IndexOf(pid_, thread.tid, thread.first_ns);
  }
  open_gaps_.Read(changes_, [&](const TaskEvent& gap) {
    const Thread* const known = changes_.Find(gap);
    return known != nullptr && known->owner != kNoThread ? std::optional(known->owner) : table_.Find(gap.tid);
  });
}

void TaskTimeline::Label(std::span<ProfileSample> samples) {
  std::vector<std::vector<const Thread*>> by_index(builder_.profile().threads.size());
  for (const Thread& thread : changes_.threads()) {
    if (thread.owner != kNoThread) by_index[thread.owner].push_back(&thread);
  }
  const std::vector<uint64_t> unknown_from_ns = open_gaps_.UnknownFrom(by_index.size());
  std::vector<uint32_t> strings(changes_.paths().size(), UINT32_MAX);  // Of the builder, by text.
  strings[0] = 0;
  for (ProfileSample& sample : samples) {
    // Later samples stay unknown until the logs have been read that far.
    if (sample.merged() || sample.time_ns > changes_.read_until_ns()) continue;
    std::optional<Change> change = At(by_index[sample.thread], sample.time_ns);
    if (sample.time_ns >= unknown_from_ns[sample.thread]) change = Change{.text = count::TaskChanges::kUnknown};
    if (!change) continue;
    uint32_t& string = strings[change->text];
    if (string == UINT32_MAX) string = builder_.String(changes_.paths()[change->text]);
    sample.task = string;
    sample.task_number = change->number;
  }
}

// Returns the task at `ns`; nullopt if it is forgotten.
std::optional<TaskTimeline::Change> TaskTimeline::At(std::span<const Thread* const> threads, uint64_t ns) {
  Change found;
  // A thread that was attached several times has an entry for each, and at most one of them is in a task at a time.
  for (const Thread* const thread : threads) {
    if (ns < thread->known_from_ns) return std::nullopt;
    if (const Change change = thread->At(ns); change.text != count::TaskChanges::kOutside) found = change;
  }
  return found;
}

void TaskTimeline::Retire(std::span<const uint32_t> renamed) {
  of_ended_ += changes_.ForgetThreads(
      [&](const Thread& thread) { return thread.owner < renamed.size() && renamed[thread.owner] != thread.owner; });
}

void TaskTimeline::ForgetUntil(uint64_t until_ns) {
  changes_.ForgetUntil(until_ns);
  changes_.ForgetLost();
  forgotten_ = of_ended_ = 0;
}

void TaskTimeline::AddTo(Profile& profile, uint64_t from_ns, uint64_t to_ns, const KeptTimes& times) const {
  std::vector<uint32_t> paths(changes_.paths().size()), names(paths.size());  // Of the profile, by text.
  const auto string = [&](std::vector<uint32_t>& strings, const std::deque<std::string>& texts, uint32_t text) {
    if (strings[text] == 0) {
      strings[text] = static_cast<uint32_t>(profile.strings.size());
      profile.strings.push_back(texts[text]);
    }
    return strings[text];
  };
  uint64_t left_out = 0;
  const std::vector<uint64_t> unknown_from_ns = open_gaps_.UnknownFrom(profile.threads.size());
  for (const Thread& thread : changes_.threads()) {
    if (thread.owner == kNoThread) continue;
    const uint64_t end_ns = std::min({to_ns, unknown_from_ns[thread.owner], changes_.known_until_ns()});
    for (auto change = thread.changes.begin(); change != thread.changes.end(); ++change) {
      if (change->number == 0) continue;
      const uint64_t next_ns = change + 1 == thread.changes.end() ? end_ns : change[1].ns;
      const uint64_t begin_ns = std::max(change->ns, from_ns), stop_ns = std::min(next_ns, to_ns);
      if (begin_ns >= stop_ns) continue;
      if (!times.Overlaps(thread.owner, begin_ns, stop_ns)) {
        ++left_out;
        continue;
      }
      profile.task_parts.push_back({.from_ns = begin_ns,
                                    .to_ns = stop_ns,
                                    .number = change->number,
                                    .thread = thread.owner,
                                    .name = string(names, changes_.names(), change->text),
                                    .task = string(paths, changes_.paths(), change->text)});
    }
  }
  std::stable_sort(profile.task_parts.begin(), profile.task_parts.end(),
                   [](const ProfileTaskPart& a, const ProfileTaskPart& b) { return a.from_ns < b.from_ns; });
  profile.accounting.task_parts_forgotten = forgotten_ + of_ended_ + left_out;
  profile.accounting.task_records_lost = changes_.lost() + open_gaps_.lost();
}

}  // namespace perfkit::session
