// Code that a process made at run time, as its compiler lists it: /tmp/perf-PID.map
// (tools/perf/Documentation/jit-interface.txt). Each function has a line, "ADDRESS SIZE NAME", with hexadecimal
// numbers.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace perfkit::proc {

struct JitFunction {
  uint64_t begin = 0, end = 0;
  std::string_view name;
};

// Parses one line; nullopt if it is malformed. `name` is a view into the line.
std::optional<JitFunction> ParseJitLine(std::string_view line);

// The list of one process. Names stay valid as long as this lives. Not thread-safe.
//
// All users may write to the folder of the file. So the file must be owned by the process's user, root or this user,
// and must not be a symbolic link. If an address was used twice, only the latest function is known.
class JitMap {
 public:
  // Limits for one process: bytes that are read of its file, and functions that are kept.
  static constexpr size_t kMaxBytes = 64 << 20;
  static constexpr size_t kMaxFunctions = 1 << 20;

  // Finds out the owner of `pid` and its number in its container, while it is alive. `proc` is a folder: "/proc".
  JitMap(pid_t pid, const std::string& proc);

  // Returns the function at `pc`, or nullopt. If `pc` is unknown, first reads what was appended to the file.
  std::optional<JitFunction> Find(uint64_t pc);

  size_t functions() const { return functions_.size(); }
  // Returns OK, or why the file is not read, or not completely.
  const absl::Status& status() const { return status_; }

 private:
  std::optional<JitFunction> Known(uint64_t pc) const;
  void ReadMore();
  void Take(std::string text);
  void Add(const JitFunction& function);

  std::vector<std::string> lists_;
  std::vector<uid_t> owners_;
  uint64_t inode_ = 0;
  uint64_t read_bytes_ = 0;  // Bytes of the file that were read: whole lines.
  absl::Status status_;
  std::deque<std::string> texts_;
  std::map<uint64_t, JitFunction> functions_;  // By their begin; none overlap.
};

}  // namespace perfkit::proc
