// The threads of a profile, by the records of the side band: a number that a later thread has again is another thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "perfkit/profile_builder.h"

namespace perfkit::session {

// Not thread-safe.
class ThreadTable {
 public:
  explicit ThreadTable(ProfileBuilder& builder) : builder_(builder) {}

  // The thread that has this number at `time_ns`: another one than before if that one belongs to another process, or
  // had ended by then.
  uint32_t IndexOf(uint32_t pid, uint32_t tid, uint64_t time_ns);
  // The number belongs to a new thread from now on, unless the thread that had it is not known to have ended: threads
  // that exist at the start may be told of twice.
  void Forked(uint32_t pid, uint32_t tid, uint32_t parent_tid, uint64_t time_ns);
  void Renamed(uint32_t pid, uint32_t tid, std::string_view name, uint64_t time_ns);
  // Returns the thread's index; nullopt if nothing was known of it.
  std::optional<uint32_t> Exited(uint32_t pid, uint32_t tid, uint64_t time_ns);

 private:
  uint32_t Add(uint32_t pid, uint32_t tid, std::string_view name, uint64_t time_ns);

  struct Entry {
    uint32_t index = 0;
    bool ended = false;  // at Profile::threads[index].last_ns
  };

  ProfileBuilder& builder_;
  std::unordered_map<uint32_t, Entry> by_number_;
};

}  // namespace perfkit::session
