// The side band of the threads and mappings that exist when a sampler starts, as records in the kernel's layout.
//
// The state is read after the start of the side band, which the kernel already writes, and before the start of samples.
// A change during the reading has a later record of its own, which then holds. So nothing is missed; some of it is
// reported twice. A process that is read later, by a Drain, is reported for the time when it was read: what it has
// mapped until then is not known, because it may have called exec or replaced libraries since the start.
#pragma once

#include <sys/types.h>
#include <time.h>

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
  // Lists the processes of the plan's target, and reads them for up to half a second. ReadMore reads the others. The
  // records have the time `time_ns`.
  SynthesizedRecords(const Plan& plan, uint64_t time_ns);

  // Returns true if a record was read and not given.
  bool has_next() const { return given_ < records_.size(); }
  // Returns the time of the next record. Requires has_next.
  uint64_t time_ns() const { return blocks_[block_].time_ns; }
  // Returns true if the next record was read by ReadMore.
  bool is_late() const { return late_; }
  // Returns the next record with the same time as the one before, nullopt if there is none. The view is valid until the
  // next call.
  std::optional<RawRecord> Next();
  // Reads further processes for up to a tenth of a second, unless there are records to be given. Their records have the
  // times at which they are read.
  void ReadMore();
  // Gives up the processes that were not read; they count as unread.
  void Close();
  // Returns the number of processes whose mappings could not be read so far: they belong to another user, or ended.
  uint64_t unread() const { return unread_; }

 private:
  // Records with one time.
  struct Block {
    uint64_t time_ns = 0;
    size_t end = 0;  // In bytes from the first record on.
  };

  // Appends the records of a process; with `maps` false only those of its threads.
  void ReadProcess(pid_t pid, uint64_t time_ns, bool maps = true);
  void ReadLate(pid_t pid);
  void EndBlock(uint64_t time_ns) { blocks_.push_back({time_ns, records_.size()}); }
  // Frees the memory, except that of the list of processes.
  void Release();

  SampleLayout layout_{AttrBits{}};
  clockid_t clock_ = CLOCK_MONOTONIC;  // The clock of the records.
  std::vector<pid_t> pids_;
  size_t next_pid_ = 0;  // The first process that was not read.
  BuildIds build_ids_;
  std::vector<std::byte> records_;
  size_t given_ = 0;  // Bytes that were delivered.
  std::vector<Block> blocks_;
  size_t block_ = 0;   // The block of the next record.
  bool late_ = false;  // The records were read by ReadMore.
  uint64_t unread_ = 0;
};

}  // namespace perfkit::sample
