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
  // Adds how often and how long the session was paused, if it was.
  void AddNotes(std::vector<std::string>& notes) const;

 private:
  struct Pause {
    uint64_t from_ns = 0, to_ns = UINT64_MAX;  // to_ns: UINT64_MAX until it ends.
  };
  bool Overlaps(uint64_t from_ns, uint64_t to_ns) const;

  std::vector<Pause> pauses_;  // In order of time.
  uint64_t count_ = 0, ended_ns_ = 0;
};

}  // namespace perfkit::session
