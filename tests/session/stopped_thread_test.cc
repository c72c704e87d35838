// A thread that a debugger has stopped: what a look at it says.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <optional>
#include <thread>

#include "perfkit/profile.h"
#include "src/proc/blocked_call.h"
#include "src/session/blocked_look.h"
#include "tests/support/skip.h"
#include "tests/support/spinning_thread.h"

namespace perfkit::session {
namespace {

// A process that stops a thread of this one, as a debugger does, until the end of the scope.
class Debugger {
 public:
  explicit Debugger(pid_t tid) {
    REQUIRE(pipe(ready_) == 0);
    REQUIRE(pipe(quit_) == 0);
    child_ = fork();
    if (child_ == 0) {
      close(quit_[1]);
      char byte = 0;
      (void)!read(quit_[0], &byte, 1);  // until this process may be traced
      byte = ptrace(PTRACE_SEIZE, tid, nullptr, nullptr) == 0 && ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr) == 0 &&
                     waitpid(tid, nullptr, __WALL) == tid
                 ? 'y'
                 : 'n';
      (void)!write(ready_[1], &byte, 1);
      (void)!read(quit_[0], &byte, 1);
      ptrace(PTRACE_DETACH, tid, nullptr, nullptr);
      _exit(0);
    }
    prctl(PR_SET_PTRACER, child_);
    (void)!write(quit_[1], "", 1);
    char answer = 'n';
    (void)!read(ready_[0], &answer, 1);
    has_stopped_ = answer == 'y';
  }
  ~Debugger() {
    (void)!write(quit_[1], "", 1);
    waitpid(child_, nullptr, 0);
    for (const int fd : {ready_[0], ready_[1], quit_[0], quit_[1]}) close(fd);
  }
  Debugger(const Debugger&) = delete;
  Debugger& operator=(const Debugger&) = delete;

  bool has_stopped() const { return has_stopped_; }

 private:
  int ready_[2], quit_[2];
  pid_t child_ = 0;
  bool has_stopped_ = false;
};

TEST_CASE("a thread that a debugger stopped is told as that", "[blocked_look][law]") {
  const testing::SpinningThread spinning;
  const Debugger debugger(spinning.tid());
  if (!debugger.has_stopped()) SKIP_TEST("threads may not be traced here");
  std::array<StackFrame, 8> frames;
  const std::optional<BlockedThread> look =
      LookAtBlocked(static_cast<uint32_t>(getpid()), proc::ThreadFiles(spinning.tid()), nullptr, frames);
  if (!proc::CanReadBlockedCalls().ok()) SKIP_TEST("/proc/self/syscall cannot be read");
  REQUIRE(look);
  CHECK(look->call.syscall == -1);
  CHECK(look->wait == ProfileWait::kTraced);
}

}  // namespace
}  // namespace perfkit::session
