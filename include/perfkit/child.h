// Runs a program and counts it from its exec on, as `perf stat COMMAND` does.
//
//   auto child = perfkit::Child::Spawn({"gzip", "-k", "big.tar"});
//   auto set = perfkit::CounterSet::Open({"instructions", "page-faults"}, child->target());
//   perfkit::Snapshot begin, end;
//   set->Read(begin);
//   absl::Status started = child->Start();   // NotFound: no such program
//   auto ended = child->Wait();
//   set->Read(end);
#pragma once

#include "perfkit/detail/library_only.h"

#include <sys/types.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "perfkit/target.h"

namespace perfkit {

// How a program ended: with an exit code, or by a signal.
struct ExitStatus {
  int code = 0;    // The exit code; 0 if a signal ended it.
  int signal = 0;  // The signal that ended it; 0 means none.
  // CPU time of the program and of its children that it has waited for, in nanoseconds, by the kernel's own account.
  uint64_t cpu_ns = 0;

  bool ok() const { return code == 0 && signal == 0; }
  // Returns the status as shells report it: the code, or 128 + signal.
  int shell_code() const { return signal != 0 ? 128 + signal : code; }
};

// A child process that waits before its exec until Start, so that counters see all of the program and nothing before
// it. Inherits the environment, open files and signal mask as any child does. Movable, not copyable: a moved-from one
// may only be assigned to or destroyed.
//
// Not thread-safe: any thread may call it, one at a time. The destructor kills and reaps a child that was never
// started; a running one continues. If this process ends without the destructor, a waiting child ends, too, but not
// before all children that were forked later have ended or called exec: until then they keep its pipe open.
class Child {
 public:
  // Forks. Start looks argv[0] up in PATH. Errors: InvalidArgument if argv or argv[0] is empty; ResourceExhausted or
  // Unavailable if descriptors or processes run out.
  static absl::StatusOr<Child> Spawn(std::span<const std::string> argv);
  static absl::StatusOr<Child> Spawn(std::initializer_list<std::string> argv);

  Child(Child&&) noexcept;
  Child& operator=(Child&&) noexcept;
  ~Child();

  pid_t pid() const;

  // The target for counters that are opened before Start: the program, its threads and children, disabled until its
  // exec. Without CAP_PERFMON, the kernel stops counting a program that gains privileges (setuid, file capabilities),
  // or whose file this user may not read. It reports no error: task-clock is then far less than ExitStatus::cpu_ns.
  Target target() const;

  // Starts the program; returns once its exec has succeeded or failed. Errors, naming the program, if it can't be run
  // (the child has then ended): NotFound, PermissionDenied, or by absl::ErrnoToStatusCode, e.g. FailedPrecondition for
  // a file that is open for writing. FailedPrecondition also if it was started before. OK if a signal has killed the
  // child before it ran the program: Wait tells that.
  absl::Status Start();

  // Waits until the program has ended. Later calls return the same status. Errors: FailedPrecondition if it was not
  // started, or if it was reaped elsewhere (e.g. SIGCHLD is ignored).
  absl::StatusOr<ExitStatus> Wait();

 private:
  struct Impl;
  explicit Child(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace perfkit
