// Runs a part of a test as an ordinary user, as most users of perfkit are.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace perfkit::testing {

// A user ID of this process alone: the kernel accounts the memory of rings by user, and several tests run at once.
inline uid_t OrdinaryUid() { return 1'000'000 + static_cast<uid_t>(getpid()); }

// Runs `body` (which returns true on success) in a child of this process, as an ordinary user if this user is root. The
// child has no perfkit state: `body` must open what it needs. Returns true if the child succeeded.
template <class Body>
bool AsOrdinaryUser(Body&& body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const uid_t uid = OrdinaryUid();
    if (geteuid() == 0 && (setgid(uid) != 0 || setuid(uid) != 0)) _exit(2);
    const bool fine = std::forward<Body>(body)();
    std::fflush(nullptr);
    _exit(fine ? 0 : 1);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace perfkit::testing
