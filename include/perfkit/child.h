// A program that is counted from its exec on: what `perf stat COMMAND` does.
//
//   auto child = perfkit::Child::Spawn({"gzip", "-k", "big.tar"});
//   auto set = perfkit::CounterSet::Open({"instructions", "page-faults"}, child->target());
//   perfkit::Snapshot begin, end;
//   set->Read(begin);
//   absl::Status started = child->Start();   // NotFound: no such program
//   auto ended = child->Wait();
//   set->Read(end);
#pragma once

#include <sys/types.h>

#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "perfkit/target.h"

namespace perfkit {

// How a program ended: by itself with a code, or by a signal.
struct ExitStatus {
  int code = 0;    // what it returned; 0 when a signal ended it
  int signal = 0;  // 0: it ended by itself

  bool ok() const { return code == 0 && signal == 0; }
  // As shells tell it: the code, or 128 + signal.
  int shell_code() const { return signal != 0 ? 128 + signal : code; }
};

// A child process that waits before its exec until Start, so that nothing of the program itself goes uncounted and
// nothing before it is counted. Inherits environment, open files and signal mask like any child. Moves, never copies.
//
// For one thread at a time. A process that spawns several children should start each before it spawns the next: a
// child that still waits holds the pipes of those that were spawned at the same moment on other threads.
// When it dies: a child that was never started is killed and reaped; one that runs is left to run.
class Child {
 public:
  // Forks. argv[0] is looked up in PATH, by Start. InvalidArgument: empty argv; ResourceExhausted or Unavailable: no
  // descriptors or no process left.
  static absl::StatusOr<Child> Spawn(std::span<const std::string> argv);
  static absl::StatusOr<Child> Spawn(std::initializer_list<std::string> argv);

  Child(Child&&) noexcept;
  Child& operator=(Child&&) noexcept;
  ~Child();

  pid_t pid() const;

  // To open counters on, before Start: the program, its threads and children, off until its exec.
  Target target() const;

  // Lets the program run; returns once its exec has succeeded or failed. NotFound or PermissionDenied, naming the
  // program, when it cannot be run: then the child is gone. FailedPrecondition the second time.
  absl::Status Start();

  // Waits until the program has ended. The same answer every time. FailedPrecondition when it was not started.
  absl::StatusOr<ExitStatus> Wait();

 private:
  struct Impl;
  explicit Child(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace perfkit
