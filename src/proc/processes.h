// What processes have mapped, as records tell it one after the other, and the modules that they have mapped it from.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/status/status.h"
#include "perfkit/sample.h"
#include "src/proc/module_file.h"
#include "src/proc/space.h"

namespace perfkit::proc {

// For one thread at a time.
class Processes {
 public:
  // What a process has mapped. `epoch` is of this state of it alone: it changes with every change.
  struct Process {
    Space space;
    uint64_t epoch = 0;
    uint64_t life = 0;  // changes with exec, and for the next process of that number
  };
  static constexpr uint64_t kNoEpoch = 0;  // of no process ever

  // `proc` is a folder: "/proc". The first modules are none, but names that the owner needs; the very first is that of
  // modules beyond the most that are kept.
  Processes(std::string proc, std::span<const char* const> no_modules);

  // Takes MMAP, MMAP2, FORK, EXIT and COMM records. Whether it was one that can change what later pcs mean.
  bool Add(const RawRecord& record, const SampleLayout& layout);
  // What `pid` has mapped now, instead of what was known of it. NotFound, PermissionDenied.
  absl::Status AddProcess(pid_t pid);

  // Null: nothing is known of it. Valid until the next Add or AddProcess.
  const Process* Find(uint32_t pid);
  // By their numbers: those of MappedRange. They stay where they are.
  const std::deque<ModuleId>& modules() const { return modules_; }

 private:
  void OnMmap(const MmapRecord& map);
  void OnExec(uint32_t pid);
  void OnFork(const ForkRecord& fork);
  void OnExit(const ExitRecord& exit);
  void Forget(uint32_t pid);
  Process& ProcessOf(uint32_t pid);
  uint32_t ModuleOf(ModuleId id, const Process& process, std::optional<uint64_t> time_ns);

  const std::string proc_;
  std::unordered_map<uint32_t, Process> processes_;
  std::deque<std::pair<uint32_t, uint64_t>> dead_;  // pid and epoch of processes that ended, the oldest first
  uint64_t epochs_ = 1;                             // 1 is free for the owner: what never changes
  uint32_t last_pid_ = 0;                           // whose process `last_` is
  const Process* last_ = nullptr;
  std::deque<ModuleId> modules_;
  std::unordered_map<std::string, uint32_t> module_index_;
};

}  // namespace perfkit::proc
