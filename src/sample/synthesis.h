// The side band of the threads and mappings that exist when a sampler starts, as records in the kernel's layout.
//
// The state is read after the start of the side band, which the kernel already writes. A change during the reading has
// a later record of its own, which then holds. So nothing is missed; some of it is reported twice. But a process that
// is read by a later Drain, and has called exec until then, has the mappings of the new program from the start on.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "perfkit/sample.h"
#include "src/sample/plan.h"

namespace perfkit::sample {

// Build-ids by device, inode and path; "" for files without one.
using BuildIds = std::unordered_map<std::string, std::string>;

// Synthesized records that are still to be delivered, each once: CGROUP if samples have that field; for each process
// FORK and COMM for each thread, then MMAP2 for each executable mapping. Not thread-safe.
class SynthesizedRecords {
 public:
  SynthesizedRecords() = default;
  // Lists the processes of the plan's target, and reads them for up to half a second. Next reads the others. All
  // records have the time `time_ns`.
  SynthesizedRecords(const Plan& plan, uint64_t time_ns);

  uint64_t time_ns() const { return time_ns_; }
  // Returns true if all records have been given.
  bool done() const { return given_ == records_.size() && next_pid_ == pids_.size(); }
  // Returns the next record, nullopt if there is none. The view is valid until the next call.
  std::optional<RawRecord> Next();
  // Returns the number of processes whose mappings could not be read so far: they belong to another user, or ended.
  uint64_t unread() const { return unread_; }

 private:
  // Appends the records of a process.
  void ReadProcess(pid_t pid);
  // Frees the memory.
  void Release();

  SampleLayout layout_{AttrBits{}};
  uint64_t time_ns_ = 0;
  std::vector<pid_t> pids_;
  size_t next_pid_ = 0;  // The first process that was not read.
  BuildIds build_ids_;
  std::vector<std::byte> records_;
  size_t given_ = 0;  // Bytes that were delivered.
  uint64_t unread_ = 0;
};

}  // namespace perfkit::sample
