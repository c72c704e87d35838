// A program that knows nothing of perfkit: uses CPU time in a function of its own, and ends in one way or another.
//
//   spin MILLISECONDS [return | crash | child | exec | trap | fork | chdir | chdir-exec | told | quit |
//                     pthread_exit]
//
// chdir: first changes its folder to "elsewhere". told: waits until its stderr, a file, has text, and quits. quit: by
// _exit. pthread_exit: the first thread leaves before another one, which runs SpinHere.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

extern "C" [[gnu::noinline]] void SpinHere(long milliseconds) {
  timespec now{};
  do {
    for (int i = 0; i < 100'000; ++i) asm volatile("");
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  } while (now.tv_sec * 1000 + now.tv_nsec / 1'000'000 < milliseconds);
}

enum class Inherited : int { kNothing, kFiles, kOthers };  // The worst; exit codes of the child.

// Returns which descriptors a forked child has that exec would close: the program itself opens none.
Inherited InheritedByChild() {
  const pid_t child = fork();
  if (child == 0) {
    Inherited worst = Inherited::kNothing;
    for (int fd = 3; fd < 1024; ++fd) {
      const int flags = fcntl(fd, F_GETFD);
      if (flags < 0 || (flags & FD_CLOEXEC) == 0) continue;
      struct stat file {};
      const bool is_file = fstat(fd, &file) == 0 && (S_ISREG(file.st_mode) || S_ISDIR(file.st_mode));
      worst = std::max(worst, is_file ? Inherited::kFiles : Inherited::kOthers);
    }
    _exit(static_cast<int>(worst));
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? Inherited{WEXITSTATUS(status)} : Inherited::kOthers;
}

// A child may have the files that another thread reads as it forks, so some child has none; and none has an event, an
// epoll or a pipe.
bool ForkedChildHasDescriptors() {
  Inherited inherited = Inherited::kFiles;
  for (int i = 0; i < 1000 && inherited == Inherited::kFiles; ++i) {
    usleep(1000);
    inherited = InheritedByChild();
  }
  return inherited != Inherited::kNothing;
}

void WaitForTextOnStderr() {
  struct stat file {};
  while (fstat(STDERR_FILENO, &file) == 0 && file.st_size == 0) usleep(1000);
}

int main(int argc, char** argv) {
  const long milliseconds = argc > 1 ? std::atol(argv[1]) : 100;
  const std::string end = argc > 2 ? argv[2] : "return";
  if (end == "trap") signal(SIGTRAP, SIG_DFL);  // as shells do
  if (end == "child" && std::system((std::string(argv[0]) + " 60").c_str()) != 0) return 1;
  if ((end == "chdir" || end == "chdir-exec") && chdir("elsewhere") != 0) return 1;
  if (end == "pthread_exit") {
    pthread_t thread;
    const auto spin = [](void* argument) -> void* {
      SpinHere(*static_cast<const long*>(argument));
      return nullptr;
    };
    static long for_milliseconds = milliseconds;
    if (pthread_create(&thread, nullptr, spin, &for_milliseconds) != 0) return 1;
    pthread_exit(nullptr);
  }
  SpinHere(milliseconds);
  if (end == "fork" && ForkedChildHasDescriptors()) return 1;
  if (end == "told") WaitForTextOnStderr();
  if (end == "told" || end == "quit") _exit(0);
  if (end == "crash") raise(SIGKILL);
  if (end == "exec" || end == "chdir-exec") execl(argv[0], argv[0], "150", static_cast<char*>(nullptr));
  return 0;
}
