// A process that computes, two calls deep, until the end of the scope.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace perfkit::session {

[[gnu::noinline]] inline void SpinInChild() {
  for (;;) asm volatile("");
}

[[gnu::noinline]] inline void CallSpinInChild() {
  SpinInChild();
  asm volatile("");  // no tail call
}

class SpinningProcess {
 public:
  explicit SpinningProcess(const char* name) {
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, name);
    CallSpinInChild();
    _exit(1);
  }
  ~SpinningProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  SpinningProcess(const SpinningProcess&) = delete;
  SpinningProcess& operator=(const SpinningProcess&) = delete;

  pid_t pid() const { return pid_; }

 private:
  const pid_t pid_ = fork();
};

}  // namespace perfkit::session
