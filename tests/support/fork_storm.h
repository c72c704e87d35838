// Forks repeatedly while other threads open and close events: each child must finish, and have no event open.
#pragma once

#include <dirent.h>
#include <limits.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string_view>
#include <thread>

namespace perfkit::testing {

// Returns the number of this process's descriptors that are events.
inline int OpenEvents() {
  int events = 0;
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return -1;
  while (const dirent* const entry = readdir(folder)) {
    char target[PATH_MAX];
    const ssize_t size = readlinkat(dirfd(folder), entry->d_name, target, sizeof(target));
    if (size > 0 && std::string_view(target, static_cast<size_t>(size)) == "anon_inode:[perf_event]") ++events;
  }
  closedir(folder);
  return events;
}

struct Forked {
  int failed = 0;   // Children that did not finish.
  int holding = 0;  // Children that had an event open.
  int rounds = 0;   // Rounds of the other threads meanwhile.
};

// `opens` opens and closes events; it runs repeatedly on a thread of its own.
template <class Opens>
Forked ForkWhile(Opens opens, int forks) {
  Forked forked;
  std::atomic<bool> stop{false};
  std::thread opener([&] {
    for (; !stop; ++forked.rounds) opens();
  });
  for (int i = 0; i < forks; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(OpenEvents() == 0 ? 0 : 1);
    int status = 0;
    waitpid(child, &status, 0);
    forked.failed += WIFEXITED(status) ? 0 : 1;
    forked.holding += WIFEXITED(status) && WEXITSTATUS(status) != 0 ? 1 : 0;
  }
  stop = true;
  opener.join();
  return forked;
}

}  // namespace perfkit::testing
