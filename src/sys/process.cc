// fork, exec and wait. Reads, writes and waits are repeated if a signal interrupts them.
#include "src/sys/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "src/base/text.h"
#include "src/sys/files.h"

namespace perfkit::sys {
namespace {

// The exit code that a shell uses if there is nothing to run.
constexpr int kExitNotRun = 127;

uint64_t Microseconds(const timeval& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000 + static_cast<uint64_t>(time.tv_usec);
}

struct Pipe {
  OwnedFd reader, writer;

  bool Open() {
    int fds[2];
    if (kernel().pipe2(fds, O_CLOEXEC) != 0) return false;
    reader = OwnedFd(fds[0]);
    writer = OwnedFd(fds[1]);
    return true;
  }
};

// The code of the child between fork and exec. Uses only calls that are safe after a fork of a process with threads.
[[noreturn]] void RunChild(const Pipe& release, const Pipe& report, char* const argv[]) {
  kernel().close(release.writer.get());  // Closes the writer, so that the pipe ends when the parent's writer is closed.
  char go;
  const ssize_t got = RetryInterrupted([&] { return kernel().read(release.reader.get(), &go, 1); });
  if (got == 0) _exit(kExitNotRun);  // The parent has ended without releasing this child.
  if (got == 1) kernel().execvp(argv[0], argv);
  const int error = errno;
  RetryInterrupted([&] { return kernel().write(report.writer.get(), &error, sizeof(error)); });
  _exit(kExitNotRun);
}

// Returns true if `program` is a path, if a folder of PATH has a file of that name, or if PATH is not set.
bool IsSomewhere(const std::string& program) {
  const char* const path = getenv("PATH");
  if (path == nullptr || program.find('/') != std::string::npos) return true;
  bool found = false;
  base::ForEachPiece(path, ':', [&](std::string_view folder) {
    found = found || Exists(absl::StrFormat("%s/%s", folder.empty() ? "." : folder, program));
  });
  return found;
}

}  // namespace

absl::StatusOr<HeldChild> HoldChild(std::span<const std::string> argv) {
  if (argv.empty() || argv[0].empty()) return absl::InvalidArgumentError("there is no program to run");
  for (const std::string& argument : argv) {
    if (argument.find('\0') == std::string::npos) continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "an argument of '%s' has a zero byte, which would end it. Remedy: leave it out", argv[0].c_str()));
  }
  std::vector<char*> arguments;  // Made before the fork: a child of a process with threads must not allocate.
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  Pipe release, report;
  if (!release.Open() || !report.Open()) {
    return absl::ErrnoToStatus(errno, absl::StrFormat("cannot make a pipe to '%s'", argv[0]));
  }
  const pid_t pid = kernel().fork();
  if (pid == 0) RunChild(release, report, arguments.data());
  if (pid < 0) return absl::ErrnoToStatus(errno, absl::StrFormat("cannot fork a child for '%s'", argv[0]));
  return HeldChild{.pid = pid,
                   .program = argv[0],
                   .release_reader = std::move(release.reader),
                   .release = std::move(release.writer),
                   .report = std::move(report.reader)};
}

int ReleaseChild(HeldChild& child) {
  const char go = 1;
  const ssize_t sent = RetryInterrupted([&] { return kernel().write(child.release.get(), &go, 1); });
  if (sent != 1) return errno;
  child.release.Reset();
  child.release_reader.Reset();
  int error = 0;
  const ssize_t got = RetryInterrupted([&] { return kernel().read(child.report.get(), &error, sizeof(error)); });
  const int read_error = errno;
  child.report.Reset();
  if (got < 0) return read_error;
  // The end of the pipe without an errno: exec has closed the child's copy (O_CLOEXEC), or the child was killed.
  if (got != sizeof(error)) return 0;
  // execvp tries each folder of PATH, and says EACCES at the end if one of them gave that (man execvp).
  return error == EACCES && !IsSomewhere(child.program) ? ENOENT : error;
}

absl::StatusOr<ProcessEnd> WaitFor(pid_t pid) {
  int status = 0;
  rusage usage{};
  const pid_t got = RetryInterrupted([&] { return kernel().wait4(pid, &status, 0, &usage); });
  if (got < 0) return absl::ErrnoToStatus(errno, absl::StrFormat("cannot wait for process %d", pid));
  const uint64_t cpu_us = Microseconds(usage.ru_utime) + Microseconds(usage.ru_stime);
  if (WIFSIGNALED(status)) return ProcessEnd{.code = 0, .signal = WTERMSIG(status), .cpu_ns = cpu_us * 1000};
  return ProcessEnd{.code = WEXITSTATUS(status), .signal = 0, .cpu_ns = cpu_us * 1000};
}

void KillAndReap(pid_t pid) {
  kernel().kill(pid, SIGKILL);
  WaitFor(pid).IgnoreError();
}

}  // namespace perfkit::sys
