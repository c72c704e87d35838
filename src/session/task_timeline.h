// The tasks of a TaskCounter, beside a session's samples.
//
//   TaskChanges ──> changes of each thread ──> Label: the task of a sample, by its time
//                                           └──> AddTo: the parts of tasks
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "perfkit/profile_builder.h"
#include "src/count/task/task_changes.h"
#include "src/session/kept_times.h"
#include "src/session/open_gaps.h"
#include "src/session/thread_table.h"

namespace perfkit::session {

// Not thread-safe.
class TaskTimeline {
 public:
  // The label of samples whose task is not known.
  static constexpr std::string_view kUnknownTask = count::TaskChanges::kUnknownTask;

  // `max_bytes`: of what is kept; beyond that the older half of it is forgotten, once the builder's samples are
  // labelled.
  TaskTimeline(std::unique_ptr<count::TaskRecording> recording, ProfileBuilder& builder, ThreadTable& threads,
               uint32_t pid, size_t max_bytes);

  // Reads what has happened since the last call. `known_ns`: the thread table knows all threads that began until then.
  void Read(uint64_t known_ns);
  // Listens no more.
  void Stop(uint64_t now_ns);
  // Begins anew, with the tasks that run at `until_ns`.
  void ForgetUntil(uint64_t until_ns);

  // Returns the label, in the builder's strings, of samples that Label has not labelled yet.
  uint32_t unknown_label() { return builder_.String(kUnknownTask); }
  // Sets the tasks of all samples that were taken before the last Read and after what is forgotten. Adds no threads.
  void Label(std::span<ProfileSample> samples);
  // Returns how many threads the TaskCounter has refused: their samples have no task.
  uint32_t refused_threads() const { return changes_.refused_threads(); }
  // Some threads of the profile are sums from now on, as ThreadTable::Retire says: their parts are forgotten.
  void Retire(std::span<const uint32_t> renamed);
  // Adds the parts of tasks, from `from_ns` to `to_ns` and in `times`, to a copy of the builder's profile, and what is
  // missing. After Label.
  void AddTo(Profile& profile, uint64_t from_ns, uint64_t to_ns, const KeptTimes& times) const;
  // Returns how many changes were dropped to limit memory.
  uint64_t forgotten() const { return forgotten_; }

 private:
  static constexpr uint32_t kNoThread = KeptTimes::kAllThreads;
  static_assert(kNoThread == count::TaskChanges::kNoOwner);

  // Their owners are indices in Profile::threads.
  using Thread = count::TaskChanges::Thread;
  using Change = count::TaskChanges::Change;

  void FindIndexes(uint64_t known_ns);
  static std::optional<Change> At(std::span<const Thread* const> threads, uint64_t ns);

  count::TaskChanges changes_;
  ProfileBuilder& builder_;
  ThreadTable& table_;
  const uint32_t pid_;
  const size_t max_bytes_;
  uint64_t forgotten_ = 0;  // parts, to limit memory
  uint64_t of_ended_ = 0;   // those of threads that became part of a sum
  OpenGaps open_gaps_;
};

}  // namespace perfkit::session
