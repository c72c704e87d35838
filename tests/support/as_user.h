// Runs a piece of a test as an ordinary user: that is what most users of perfkit are.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace perfkit::testing {

// A user of this process alone: the kernel accounts the memory that rings lock by user, whoever else runs tests here.
inline uid_t OrdinaryUid() { return 1'000'000 + static_cast<uid_t>(getpid()); }

// Runs `body` (returns true when all is well) in a child of this process, as an ordinary user when we are root. The
// child inherits no perfkit state: open what you need inside. Returns true if the child said so.
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
