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
#include "absl/status/statusor.h"
#include "src/sys/owned_tail.h"

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
// and must not be a symbolic link. A file that was last changed before the process started is of an earlier process
// with the same number, as in a container that was started again. A list that a program has written is also used for
// the program that it becomes by exec. If an address was used twice, only the latest function is known.
class JitMap {
 public:
  // Limits for one process: bytes that are read of its file, and functions that are kept.
  static constexpr size_t kMaxBytes = 64 << 20;
  static constexpr size_t kMaxFunctions = 1 << 20;

  // Finds out the owner of `pid` and its number in its container, while it is alive. `proc` is a folder: "/proc".
  // `parent`, if it is not null, is the list of the process that this one was forked from, and must outlive it.
  JitMap(pid_t pid, const std::string& proc, JitMap* parent = nullptr);

  // Returns the function at `pc`, or nullopt. First reads what was appended to the file: the compiler may have used the
  // address again. That takes some system calls. Functions that this process has not listed are the parent's. Returns
  // nullopt, with a status, if the parent has used the address again, before or after the fork, or if this process's
  // list may not be read.
  std::optional<JitFunction> Find(uint64_t pc);

  size_t functions() const { return functions_.size(); }
  // Returns OK, or why the file is not read, or not completely, or why an inherited function is not known.
  const absl::Status& status() const;

 private:
  std::optional<JitFunction> Known(uint64_t pc) const;
  std::optional<JitFunction> FindForChild(uint64_t pc);
  void ReadMore();
  // Returns true if the file is the one that was read before, or that one with more lines.
  bool Continues(const std::string& list, const sys::FileTail& tail) const;
  absl::StatusOr<sys::FileTail> ReadTail(const std::string& list, uint64_t offset);
  void Take(std::string text);
  void Add(const JitFunction& function);

  JitMap* const parent_;
  std::vector<std::string> lists_;
  std::vector<uid_t> owners_;
  const uint64_t started_ns_;  // When the process was started, by CLOCK_REALTIME; 0 if that is not known.
  uint64_t inode_ = 0;
  uint64_t read_bytes_ = 0;      // Bytes of the file that were read: whole lines.
  uint64_t changed_ns_ = 0;      // Its ctime when it was read.
  std::string_view last_;        // The last bytes that were read, of texts_.
  bool is_cut_ = false;          // The file exceeds a limit: no more is read.
  bool has_older_list_ = false;  // A list was refused: it is older than the process.
  bool is_refused_ = false;      // The list at hand is another user's, or a link.
  absl::Status status_, inherited_status_;
  std::deque<std::string> texts_;
  std::map<uint64_t, JitFunction> functions_;  // By their begin; none overlap.
};

}  // namespace perfkit::proc
