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
  // All that the process has mapped is told by records: it was synthesized, or begins anew by exec.
  void Know(uint32_t pid) { known_.insert(pid); }
  // A child has what its parent has.
  void Forked(const ForkRecord& fork, bool synthesized);
  // Returns true once for each process that is not known. It is, from then on. The idle threads are no process.
  bool IsNew(uint32_t pid) { return pid != 0 && known_.insert(pid).second; }

 private:
  std::unordered_set<uint32_t> known_;
};

// The process that a record of mappings is about.
uint32_t MappedProcess(const RawRecord& record, const SampleLayout& layout);

// The name of a thread that is there, from /proc; "" if there is none.
std::string FindName(uint32_t pid, uint32_t tid);

}  // namespace perfkit::session
