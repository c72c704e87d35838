// When a session was paused: frames of that time lack samples and waits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "perfkit/profile.h"

namespace perfkit::session {

// Not thread-safe.
class Pauses {
 public:
  static constexpr size_t kMaxPauses = 4096;  // Of more, the oldest two become one with the time between them.

  void Begin(uint64_t now_ns);
  void End(uint64_t now_ns);
  // Clears ProfileZone::is_whole of frames during a pause.
  void Mark(Profile& profile) const;
  // Adds how often and how long the session was paused after `from_ns`, if it was.
  void AddNotes(std::vector<std::string>& notes, uint64_t from_ns) const;

 private:
  struct Pause {
    uint64_t from_ns = 0, to_ns = UINT64_MAX;  // to_ns: UINT64_MAX until it ends.
    uint64_t count = 1, ended_ns = 0;          // How many pauses it is, and their time without that between them.
  };
  bool Overlaps(uint64_t from_ns, uint64_t to_ns) const;

  std::vector<Pause> pauses_;  // In order of time.
};

}  // namespace perfkit::session
