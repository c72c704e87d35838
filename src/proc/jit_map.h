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
  bool reused = false;  // Another function had one of its addresses before.
};

// Parses one line; nullopt if it is malformed. `name` is a view into the line.
std::optional<JitFunction> ParseJitLine(std::string_view line);

// The list of one process, and of the process that it was forked from. Names stay valid as long as this lives. Not
// thread-safe.
//
// All users may write to the folder of the file. So the file must be owned by the process's user, root or this user,
// and must not be a symbolic link. If an address was used twice, only the latest function is known.
class JitMap {
 public:
  // Limits for one process: bytes that are read of its file, and functions that are kept.
  static constexpr size_t kMaxBytes = 64 << 20;
  static constexpr size_t kMaxFunctions = 1 << 20;

  // Finds out the owner of `pid` and its number in its container, while it is alive. `proc` is a folder: "/proc".
  // `parent`, if it is not null, is the list of the process that this one was forked from, and must outlive it.
  JitMap(pid_t pid, const std::string& proc, JitMap* parent = nullptr);

  // Returns the function at `pc`, or nullopt. First reads what was appended to the file: the compiler may have used the
  // address again. That takes some system calls. Functions that this process has not listed are the parent's, except at
  // addresses that the parent has used again, which may have been before or after the fork: nullopt (status).
  std::optional<JitFunction> Find(uint64_t pc);

  size_t functions() const { return functions_.size(); }
  // Returns OK, or why the file is not read, or not completely, or why an inherited function is not known.
  const absl::Status& status() const;

 private:
  std::optional<JitFunction> Known(uint64_t pc) const;
  std::optional<JitFunction> FindForChild(uint64_t pc);
  void ReadMore();
  void Take(std::string text);
  void Add(const JitFunction& function);

  JitMap* const parent_;
  std::vector<std::string> lists_;
  std::vector<uid_t> owners_;
  uint64_t inode_ = 0;
  uint64_t read_bytes_ = 0;  // Bytes of the file that were read: whole lines.
  absl::Status status_, inherited_status_;
  std::deque<std::string> texts_;
  std::map<uint64_t, JitFunction> functions_;  // By their begin; none overlap.
};

}  // namespace perfkit::proc
