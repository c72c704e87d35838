// The threads of a profile, by side-band records. If a later thread gets the same tid, it is another thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "perfkit/profile_builder.h"

namespace perfkit::session {

// Not thread-safe.
class ThreadTable {
 public:
  // Maximum number of ended threads that are kept apart. Beyond it, the older half become sums.
  static constexpr size_t kMaxEnded = 1024;
  // Maximum number of sums with a name. Threads with other names are in one more, without a name.
  static constexpr size_t kMaxSums = 256;

  // Maximum number of threads in sums that are known by their tids: a flight recorder reads their samples late.
  static constexpr size_t kMaxLate = 1 << 15;

  // Returns the name of a thread that has no record; "" if it has none.
  using NameSource = std::string (*)(uint32_t pid, uint32_t tid);

  // `name_of`: nullptr if all threads have records.
  explicit ThreadTable(ProfileBuilder& builder, NameSource name_of = nullptr) : builder_(builder), name_of_(name_of) {}

  // Adds a thread that is never summed up with others. Requires that no record of it was added before.
  void List(uint32_t pid, uint32_t tid, std::string_view name, uint64_t time_ns);
  // Returns the thread that has this tid at `time_ns`. That is a new one if the known one belongs to another process,
  // or had ended by then.
  uint32_t IndexOf(uint32_t pid, uint32_t tid, uint64_t time_ns);
  // Returns the index of the thread that has this tid now, if it is known and has not ended.
  std::optional<uint32_t> Find(uint32_t tid) const;
  // Gives the tid to a new thread, unless the known one has not ended: threads that exist at the start may have two
  // records.
  void Forked(uint32_t pid, uint32_t tid, uint32_t parent_tid, uint64_t time_ns);
  void Renamed(uint32_t pid, uint32_t tid, std::string_view name, uint64_t time_ns);
  // Keeps the name of a thread that existed at the start. It gets an entry of Profile::threads with its first other
  // record: of all threads of a machine, few are sampled.
  void Existed(uint32_t pid, uint32_t tid, std::string_view name);
  // Returns the thread's index; nullopt if nothing was known of it.
  std::optional<uint32_t> Exited(uint32_t pid, uint32_t tid, uint64_t time_ns);

  // If more than kMaxEnded threads have ended, adds the older half up by name, and returns the index that each thread
  // has from now on; else returns an empty list. The caller must move what it has by the old index. Late records of the
  // last kMaxLate / 2 threads that ended, or more, count for their sums.
  std::vector<uint32_t> Retire();
  // Returns the indexes in Profile::threads that no thread has at the moment.
  const std::vector<uint32_t>& unused() const { return unused_; }
  // Returns the indexes of the threads that were added by List.
  const std::vector<uint32_t>& listed() const { return listed_; }
  // Returns how many threads are in sums.
  uint64_t retired() const { return retired_; }

 private:
  struct Entry {
    uint32_t index = 0;
    bool ended = false;
    uint64_t end_ns = 0;
  };

  // The name of a thread without an entry.
  struct KeptName {
    uint32_t pid = 0;
    std::string name;
  };

  // Returns the name of a thread that has no entry yet.
  std::string FirstNameOf(uint32_t pid, uint32_t tid) const;
  uint32_t Add(uint32_t pid, uint32_t tid, std::string_view name, uint64_t time_ns);
  void End(Entry& entry, uint64_t time_ns);
  uint32_t NewRow(const ProfileThread& thread);
  uint32_t SumOf(uint32_t name, uint32_t pid);
  void AddToSum(uint32_t sum, uint32_t thread);
  void ForgetLate();

  ProfileBuilder& builder_;
  NameSource name_of_;
  std::unordered_map<uint32_t, Entry> by_number_;
  std::unordered_map<uint32_t, KeptName> kept_names_;  // by tid
  std::deque<uint32_t> ended_;    // indexes, oldest first, without those in sums and in listed_
  std::vector<uint32_t> sums_;    // indexes
  std::vector<uint32_t> unused_;  // indexes
  std::vector<uint32_t> listed_;  // indexes
  uint64_t retired_ = 0;
};

}  // namespace perfkit::session
