// Processes whose mappings are all known. A sampler of tasks has records of all their mappings. A sampler of whole CPUs
// has records of new mappings only, so existing processes are looked up in /proc.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>

#include "perfkit/sample.h"

namespace perfkit::session {

// Not thread-safe.
class KnownProcesses {
 public:
  // To be called if records tell all mappings of the process: they were synthesized, or the process has called exec.
  void Know(uint32_t pid) { known_.insert(pid); }
  // A forked child is known if its parent is.
  void Forked(const ForkRecord& fork, bool synthesized);
  // Returns true if the process is not known, and makes it known. Returns false for pid 0, the idle threads.
  bool IsNew(uint32_t pid) { return pid != 0 && known_.insert(pid).second; }

 private:
  std::unordered_set<uint32_t> known_;
};

// Returns the process whose mappings a record is about; 0 for other records.
uint32_t MappedProcess(const RawRecord& record, const SampleLayout& layout);

// Returns the name of a living thread, from /proc; "" if there is none.
std::string FindName(uint32_t pid, uint32_t tid);

}  // namespace perfkit::session
