// What a session gives up to limit its memory and time, and when: a note for each kind of it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace perfkit::session {

// Not thread-safe.
class Reductions {
 public:
  // How much was given up until now.
  struct Counts {
    uint64_t times = 0;       // samples that were merged for want of memory
    uint64_t dumps = 0;       // samples whose dump was dropped
    uint64_t stacks = 0;      // samples whose stack was cut
    uint64_t addresses = 0;   // leaves that are known by their module only
    uint64_t zones = 0;       // zones and frames
    uint64_t task_parts = 0;  // parts of tasks
    uint64_t threads = 0;     // ended threads that were summed up by name
  };

  // Sets the time from which on the first increase is, and to which notes refer.
  void Start(uint64_t now_ns) { start_ns_ = seen_ns_ = now_ns; }
  // Notes which counts have grown since the last call. A count that has shrunk began anew.
  void Note(const Counts& counts, uint64_t now_ns);
  // Returns a sentence for each kind of which there was any.
  std::vector<std::string> Notes() const;

 private:
  struct Kind {
    uint64_t count = 0;                    // at the last call
    uint64_t times = 0;                    // how many calls have found an increase
    uint64_t after_ns = 0, before_ns = 0;  // the first one was between them
    uint64_t last_ns = 0;                  // the last one was before
  };

  std::array<Kind, 7> kinds_;  // as Counts
  uint64_t start_ns_ = 0, seen_ns_ = 0;
};

}  // namespace perfkit::session
