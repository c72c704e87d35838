// Held children, against what the kernel shows of them in /proc.
#include "src/sys/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "src/sys/files.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/work.h"

namespace perfkit::sys {
namespace {

using testing::Call;
using testing::FakeKernel;

const std::vector<std::string> kTrue = {"true"};

std::string CommandOf(pid_t pid) { return ReadFile("/proc/" + std::to_string(pid) + "/comm").value_or("gone\n"); }

bool IsThere(pid_t pid) { return kill(pid, 0) == 0; }

TEST_CASE("a held child is a copy of this process until it is released", "[process][law]") {
  absl::StatusOr<HeldChild> child = HoldChild(std::vector<std::string>{"sh", "-c", "exit 7"});
  REQUIRE(child.ok());
  testing::Sleep(20'000'000);
  CHECK(CommandOf(child->pid) == CommandOf(getpid()));
  CHECK(ReleaseChild(*child) == 0);
  const absl::StatusOr<ProcessEnd> end = WaitFor(child->pid);
  REQUIRE(end.ok());
  CHECK(end->signal == 0);
  CHECK(end->code == 7);
  CHECK_FALSE(IsThere(child->pid));
}

TEST_CASE("a failed exec is told by its errno", "[process]") {
  setenv("PATH", "/usr/bin:/bin", 1);  // a folder that may not be searched would turn ENOENT into EACCES
  for (const auto& [program, error] : {std::pair{"/no/such/program", ENOENT}, std::pair{"no-such-program", ENOENT},
                                       std::pair{"/etc/passwd", EACCES}}) {
    absl::StatusOr<HeldChild> child = HoldChild(std::vector<std::string>{program});
    REQUIRE(child.ok());
    CHECK(ReleaseChild(*child) == error);
    const absl::StatusOr<ProcessEnd> end = WaitFor(child->pid);
    REQUIRE(end.ok());
    CHECK(end->code == 127);
  }
}

TEST_CASE("a folder of PATH that may not be searched hides no misspelled name", "[process]") {
  setenv("PATH", "/usr/bin:/bin", 1);
  FakeKernel fake;
  fake.below().execvp = [](const char*, char* const[]) {  // as it does beside such a folder
    errno = EACCES;
    return -1;
  };
  for (const auto& [program, error] : {std::pair{"no-such-program", ENOENT}, std::pair{"true", EACCES}}) {
    absl::StatusOr<HeldChild> child = HoldChild(std::vector<std::string>{program});
    REQUIRE(child.ok());
    CHECK(ReleaseChild(*child) == error);
    CHECK(WaitFor(child->pid).ok());
  }
}

TEST_CASE("a child that is released ends by itself", "[process]") {
  absl::StatusOr<HeldChild> child = HoldChild(kTrue);
  REQUIRE(child.ok());
  child->release.Reset();
  child->release_reader.Reset();
  const absl::StatusOr<ProcessEnd> end = WaitFor(child->pid);
  REQUIRE(end.ok());
  CHECK(end->signal == 0);
  CHECK(end->code == 127);
}

TEST_CASE("a child that was killed while it was held does no harm", "[process]") {
  absl::StatusOr<HeldChild> child = HoldChild(kTrue);
  REQUIRE(child.ok());
  REQUIRE(kill(child->pid, SIGKILL) == 0);
  CHECK(ReleaseChild(*child) == 0);  // no SIGPIPE here; its status tells what became of it
  const absl::StatusOr<ProcessEnd> end = WaitFor(child->pid);
  REQUIRE(end.ok());
  CHECK(end->signal == SIGKILL);
}

TEST_CASE("killing reaps", "[process]") {
  absl::StatusOr<HeldChild> child = HoldChild(std::vector<std::string>{"sleep", "1000"});
  REQUIRE(child.ok());
  CHECK(ReleaseChild(*child) == 0);
  KillAndReap(child->pid);
  CHECK_FALSE(IsThere(child->pid));
  CHECK_FALSE(WaitFor(child->pid).ok());
}

TEST_CASE("nothing to run is an error before any fork", "[process]") {
  const FakeKernel fake;
  CHECK(absl::IsInvalidArgument(HoldChild({}).status()));
  CHECK(absl::IsInvalidArgument(HoldChild(std::vector<std::string>{""}).status()));
  CHECK(fake.calls(Call::kFork) == 0);
}

TEST_CASE("the exec'd program has none of our descriptors", "[process]") {
  int fds[2];
  REQUIRE(pipe2(fds, O_CLOEXEC) == 0);
  const OwnedFd reader(fds[0]);
  {
    const OwnedFd writer(fds[1]);
    const std::string to_pipe =
        "ls /proc/self/fd | wc -l > /proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(writer.get());
    absl::StatusOr<HeldChild> child = HoldChild(std::vector<std::string>{"sh", "-c", to_pipe});
    REQUIRE(child.ok());
    CHECK(ReleaseChild(*child) == 0);
    REQUIRE(WaitFor(child->pid).ok());
  }
  char text[16] = {};
  REQUIRE(read(reader.get(), text, sizeof(text) - 1) > 0);
  // What this program was started with may have more than the three; what HoldChild made must not be there.
  size_t inherited = 0;
  for (int fd = 0; fd < 1024; ++fd) {
    const int flags = fcntl(fd, F_GETFD);
    if (flags >= 0 && (flags & FD_CLOEXEC) == 0) ++inherited;
  }
  CHECK(static_cast<size_t>(std::stoi(text)) == inherited + 1);  // and the folder that ls reads
}

TEST_CASE("no failing call leaves a child or a descriptor", "[process][sweep]") {
  const testing::SweepTally tally = testing::SweepFaults([] {
    absl::StatusOr<HeldChild> child = HoldChild(kTrue);
    if (!child.ok()) return child.status();
    const int error = ReleaseChild(*child);
    if (error != 0) {
      KillAndReap(child->pid);
      return absl::ErrnoToStatus(error, "release");
    }
    return WaitFor(child->pid).status();
  });
  CHECK(tally.refused > 0);
  while (waitpid(-1, nullptr, WNOHANG) > 0) continue;  // those whose wait4 was made to fail
}

}  // namespace
}  // namespace perfkit::sys
