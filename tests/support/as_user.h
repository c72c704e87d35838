// Runs a part of a test as an ordinary user, as most users of perfkit are.
#pragma once

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

namespace perfkit::testing {

// A user ID of this process alone: the kernel accounts the memory of rings by user, and several tests run at once.
inline uid_t OrdinaryUid() { return 1'000'000 + static_cast<uid_t>(getpid()); }

// Makes this process that of an ordinary user, who has the given capability (linux/capability.h) and no other.
inline bool BecomeUserWith(unsigned capability) {
  const uid_t uid = OrdinaryUid();
  if (prctl(PR_SET_KEEPCAPS, 1) != 0 || setgid(uid) != 0 || setuid(uid) != 0) return false;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  data[capability / 32].effective = data[capability / 32].permitted = 1U << capability % 32;
  return syscall(SYS_capset, &header, data) == 0;
}

// Runs `body` (which returns true on success) in a child of this process, as an ordinary user if this user is root, and
// with a capability, if one is given and this user is root. The child has no perfkit state: `body` must open what it
// needs. Returns true if the child succeeded.
template <class Body>
bool AsUserWith(std::optional<unsigned> capability, Body&& body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const uid_t uid = OrdinaryUid();
    if (capability && !BecomeUserWith(*capability)) _exit(2);
    if (geteuid() == 0 && (setgid(uid) != 0 || setuid(uid) != 0)) _exit(2);
    const bool fine = std::forward<Body>(body)();
    std::fflush(nullptr);
    _exit(fine ? 0 : 1);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// The same as an ordinary user without capabilities.
template <class Body>
bool AsOrdinaryUser(Body&& body) {
  return AsUserWith(std::nullopt, std::forward<Body>(body));
}

}  // namespace perfkit::testing
