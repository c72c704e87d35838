// Code that a process made at run time, as its compiler lists it: /tmp/perf-PID.map (tools/perf/Documentation/
// jit-interface.txt), a line for each function, "ADDRESS SIZE NAME" with numbers in hexadecimal.
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

// One line; nullopt if it is none. `name` is a view into the line.
std::optional<JitFunction> ParseJitLine(std::string_view line);

// The list of one process. Names stay valid as long as this lives. Not thread-safe.
//
// The file stands where everybody may write, so it must be the process's user's, root's or ours, and no symbolic link.
// Of an address that was used twice the latest function is known only.
class JitMap {
 public:
  // At most so much is read of one process's file, and so many functions are kept.
  static constexpr size_t kMaxBytes = 64 << 20;
  static constexpr size_t kMaxFunctions = 1 << 20;

  // Finds out, while `pid` is alive, whose it is and what its number is in its container. `proc` is a folder: "/proc".
  JitMap(pid_t pid, const std::string& proc);

  // The function at `pc`, or nullopt. Looks whether the file has grown when it does not know `pc`.
  std::optional<JitFunction> Find(uint64_t pc);

  size_t functions() const { return functions_.size(); }
  // OK, or why the file is not read, or not whole.
  const absl::Status& status() const { return status_; }

 private:
  std::optional<JitFunction> Known(uint64_t pc) const;
  void ReadMore();
  void Take(std::string text);
  void Add(const JitFunction& function);

  std::vector<std::string> lists_;
  std::vector<uid_t> owners_;
  uint64_t inode_ = 0;
  uint64_t read_bytes_ = 0;  // of the file: whole lines
  absl::Status status_;
  std::deque<std::string> texts_;
  std::map<uint64_t, JitFunction> functions_;  // by their begin, none over another
};

}  // namespace perfkit::proc
