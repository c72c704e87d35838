// When the task of each thread changed, by CLOCK_MONOTONIC, as a recording tells it. The task at a time is found by
// binary search.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "src/count/task/task_recording.h"

namespace perfkit::count {

// Not thread-safe.
class TaskChanges {
 public:
  static constexpr std::string_view kUnknownTask = "[task unknown]";
  // Numbers of texts: no task, and kUnknownTask.
  static constexpr uint32_t kOutside = 0, kUnknown = 1;
  static constexpr uint32_t kNoOwner = UINT32_MAX;

  // The task of a thread from a time on.
  struct Change {
    uint64_t ns = 0;
    uint64_t number = 0;  // Of the task; 0: it is in none, or that is not known.
    uint32_t text = kOutside;
  };
  // A thread while it was attached once. `owner` is set by the user of this object, e.g. to the thread's index in
  // Profile::threads; kNoOwner until then.
  struct Thread {
    uint32_t tid = 0;
    uint32_t owner = kNoOwner;
    uint64_t first_ns = UINT64_MAX, last_ns = 0;
    uint64_t known_from_ns = 0;  // What was before is forgotten.
    bool has_ended = false;      // It is attached no more.
    std::vector<Change> changes;

    // Returns the change that holds at `ns`, or one with kOutside. Requires that `ns` is not forgotten.
    Change At(uint64_t ns) const;
  };

  explicit TaskChanges(std::unique_ptr<TaskRecording> recording) : recording_(std::move(recording)) {}

  // Adds what has happened since the last call. Does nothing after Stop.
  void Read();
  // Ends the recording. What has happened since the last Read is not known.
  void Stop();
  // As TaskRecording::ReadGaps: what was not known at read_until_ns(). None after Stop.
  void ReadGaps(absl::FunctionRef<void(const TaskEvent& gap)> visit) const;
  // Returns the time of the last Read: until then all but gaps is known. Once another recording of the TaskCounter has
  // begun, it does not change any more.
  uint64_t read_until_ns() const { return read_until_ns_; }
  // Returns the same if another recording has begun, else UINT64_MAX: later events may still be told.
  uint64_t known_until_ns() const { return is_detached_ ? read_until_ns_ : UINT64_MAX; }
  // Returns how many threads the TaskCounter has refused: what ran there is not known.
  uint32_t refused_threads() const { return refused_threads_; }
  // Returns the number of records that were lost in gaps that have ended; ReadGaps has the others.
  uint64_t lost() const { return lost_; }
  bool is_recording() const { return recording_ != nullptr; }

  // Threads may be changed in `owner`.
  std::vector<Thread>& threads() { return threads_; }
  const std::vector<Thread>& threads() const { return threads_; }
  // Returns the thread of an event, or nullptr if nothing has been read of it.
  const Thread* Find(const TaskEvent& event) const;

  // By text: "level/load > file", and the name of the task alone, "file". Both are kUnknownTask if the task is unknown.
  // References to single ones stay valid.
  const std::deque<std::string>& paths() const { return paths_; }
  const std::deque<std::string>& names() const { return names_; }

  // Size of all changes.
  size_t bytes() const { return bytes_; }
  // Forget the oldest changes of each thread, one part in `divisor`, except its last one; or whole threads. Return the
  // number of parts of tasks in them.
  uint64_t Forget(size_t divisor);
  uint64_t ForgetThreads(absl::FunctionRef<bool(const Thread& thread)> is_forgotten);
  // Forgets the changes of each thread before `until_ns`, except the last one of them: it says which task runs then.
  void ForgetUntil(uint64_t until_ns);
  // Sets the lost records to 0.
  void ForgetLost() { lost_ = 0; }

 private:
  void Add(const TaskEvent& event);
  void AddChange(Thread& thread, const Change& change);
  Change ChangeTo(uint64_t ns, const TaskPosition& position);
  static uint64_t PartsOf(std::span<const Change> changes);
  // Forgets the first `count` changes of a thread, which must have more. Returns the number of parts of tasks in them.
  uint64_t ForgetFirst(Thread& thread, size_t count);

  std::unique_ptr<TaskRecording> recording_;
  uint64_t read_until_ns_ = 0;
  bool is_detached_ = false;
  std::vector<TaskEvent> gaps_;  // Of the last Read.
  size_t bytes_ = 0;
  uint64_t lost_ = 0;
  uint32_t refused_threads_ = 0;
  std::deque<std::string> paths_{"", std::string(kUnknownTask)};
  std::deque<std::string> names_{"", std::string(kUnknownTask)};
  std::map<std::pair<uint16_t, uint16_t>, uint32_t> texts_;  // By TaskPosition::awaiters and node.
  std::vector<Thread> threads_;
  std::map<uint64_t, size_t> by_serial_;  // In threads_, by TaskEvent::thread.
};

}  // namespace perfkit::count
