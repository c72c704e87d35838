// The mappings of processes, updated record by record, and the modules that they map.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "perfkit/sample.h"
#include "src/proc/module_file.h"
#include "src/proc/space.h"

namespace perfkit::proc {

// Not thread-safe.
class Processes {
 public:
  // The mappings of a process. `epoch` names this state: it is unique, and changes with each change.
  struct Process {
    Space space;
    uint64_t epoch = 0;
    uint64_t life = 0;  // Changes with exec, and for the next process with the same number.
    // The process that it was forked from, if it has inherited memory without a file from it.
    std::shared_ptr<const ForkedFrom> parent;
  };
  static constexpr uint64_t kNoEpoch = 0;  // Never the epoch of a process.

  // `proc` is a folder: "/proc". The first modules are placeholders that the owner needs; the very first stands for all
  // modules beyond the maximum.
  Processes(std::string proc, std::span<const char* const> no_modules);

  // Takes MMAP, MMAP2, FORK, EXIT and COMM records, and the times of others. Returns true if the record may change the
  // meaning of later pcs.
  bool Add(const RawRecord& record, const SampleLayout& layout);
  // Reads the mappings of `pid` from /proc, in place of what was known. Errors: NotFound, PermissionDenied.
  absl::Status AddProcess(pid_t pid);

  // Returns nullptr if nothing is known of the process. Valid until changes() is another number.
  const Process* Find(uint32_t pid);
  // Returns how often a process was changed or forgotten.
  uint64_t changes() const { return changes_; }
  // Returns the module of a range of `process`, which has the number `pid`. It is another one than MappedRange::module
  // if the process has inherited memory without a file: such memory is a module of its own in each process, because the
  // processes may put different code there later.
  uint32_t ModuleIn(uint32_t pid, const Process& process, uint32_t module);
  // Returns the modules by their numbers, which are those of MappedRange. Their addresses do not change.
  const std::deque<ModuleId>& modules() const { return modules_; }

 private:
  // Mappings of a process as they were at a time which the records have not reached.
  struct LateRead {
    pid_t pid = 0;
    uint64_t time_ns = 0;  // By CLOCK_MONOTONIC.
    std::string maps;
    std::vector<std::string> build_ids;  // Of the executable mappings, in their order.
  };

  void OnMmap(const MmapRecord& map);
  void OnExec(uint32_t pid);
  void OnFork(const ForkRecord& fork, std::optional<uint64_t> time_ns);
  void ReadParent(const ForkRecord& fork, std::optional<uint64_t> time_ns);
  absl::StatusOr<LateRead> Read(pid_t pid) const;
  void Install(const LateRead& late);
  bool InstallUntil(std::optional<uint64_t> time_ns);
  void OnExit(const ExitRecord& exit);
  void Forget(uint32_t pid);
  Process& ProcessOf(uint32_t pid);
  uint32_t ModuleOf(ModuleId id, const Process& process, std::optional<uint64_t> time_ns);
  FileState StateSince(ModuleId id, int64_t mapped_ns) const;
  bool MayBeMade(const MappedRange& range) const { return modules_[range.module].may_be_made(); }

  const std::string proc_;
  std::unordered_map<uint32_t, Process> processes_;
  std::vector<LateRead> late_;                      // In the order of their times.
  std::deque<std::pair<uint32_t, uint64_t>> dead_;  // Pid and epoch of ended processes, the oldest first.
  uint64_t epochs_ = 1;                             // 1 is reserved for the owner: the state that never changes.
  uint64_t changes_ = 0;                            // changes().
  uint32_t last_pid_ = 0;                           // The process of `last_`.
  const Process* last_ = nullptr;
  std::deque<ModuleId> modules_;
  std::unordered_map<std::string, uint32_t> module_index_;
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> inherited_;  // By the ancestor's module and the heir's life.
};

}  // namespace perfkit::proc
