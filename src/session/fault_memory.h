// Finds the mapping that a page fault was in.
//
//   address ──> the mappings as they were last read, after the fault ──> Profile::memory
//
// The kernel tells mappings of data to no sampler that does not ask for all of them, and their end to none. So
// /proc/self/maps is read, once for all faults that were sampled until then, and not more often than costs the
// session's thread 5 % of a CPU.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "perfkit/profile_builder.h"
#include "perfkit/sample.h"

namespace perfkit::session {

// What a sampled event has touched.
struct TouchedMemory {
  uint64_t address = 0;        // 0: nothing
  uint64_t stack_pointer = 0;  // the thread's, in user space; 0: not known

  // Returns {} if samples do not have the address.
  static TouchedMemory Of(const Sample& sample);
};

// Of the calling process. Not thread-safe.
class FaultMemory {
 public:
  // Returns the index in Profile::memory of what was touched at `time_ns`; kNoMemory if nothing is mapped there.
  uint32_t IndexOf(const TouchedMemory& touched, uint64_t time_ns, ProfileBuilder& builder);
  // Forgets the indexes that IndexOf has returned. To be called when Profile::memory was changed.
  void ForgetIndexes() { indexes_.clear(); }

 private:
  struct Mapping {
    uint64_t from = 0, to = 0;
    std::string_view name;  // a view of text_
  };

  void Read(uint64_t now_ns);
  const Mapping* Find(uint64_t address) const;

  std::string text_;  // of /proc/self/maps
  std::vector<Mapping> mappings_;
  uint64_t read_ns_ = 0, next_read_ns_ = 0;  // by CLOCK_MONOTONIC
  std::map<std::tuple<uint64_t, uint64_t, std::string>, uint32_t> indexes_;
};

}  // namespace perfkit::session
