// Runs a piece of a test in a child process, which begins with the kernel's own way to handle some signals: perfkit
// never lets go of SIGTRAP, and the program that starts a test may ignore the others.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace perfkit::testing {

// How a child ends that runs `body` (true: exit 0). Signals count from 1000.
template <class Body>
int InChild(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    for (const int number : {SIGTRAP, SIGPIPE, SIGXFSZ}) signal(number, SIG_DFL);
    _exit(body() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace perfkit::testing
