// Tracepoints for a test, on machines where tracefs is not mounted.
#pragma once

#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "tests/support/own_mounts.h"

namespace perfkit::testing {

// Calls body, which returns whether all is fine, in a child with mounts of its own, tracefs among them. Returns 0 fine,
// 1 not, 2 it cannot be mounted.
template <class Body>
int WithTracefs(Body&& body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const bool mounted =
        OwnMounts() && (mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, nullptr) == 0 || errno == EBUSY);
    _exit(!mounted ? 2 : body() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace perfkit::testing
