// What threads wait for, in words.
#include "src/sys/describe_call.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>

#include "absl/strings/str_format.h"
#include "src/sys/files.h"

namespace perfkit::sys {
namespace {

using Arguments = std::array<uint64_t, 6>;

TEST_CASE("calls in which threads sleep have words, others their number", "[describe_call]") {
  CHECK(DescribeCall(-1, Arguments{}) == "outside of a system call");
  CHECK(DescribeCall(SYS_futex, Arguments{0x7f12}) == "futex 0x7f12");
  CHECK(DescribeCall(SYS_read, Arguments{3}) == "read of descriptor 3");
  CHECK(DescribeCall(SYS_ppoll, Arguments{0, 1}) == "poll of 1 descriptor");
  CHECK(DescribeCall(SYS_ppoll, Arguments{0, 0}) == "poll of 0 descriptors");
  CHECK(DescribeCall(SYS_getpid, Arguments{}) == absl::StrFormat("system call %d", SYS_getpid));
}

TEST_CASE("descriptors of a thread that is in its call have their files", "[describe_call]") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const auto tid = static_cast<pid_t>(syscall(SYS_gettid));
  const std::string pipe_name = LinkTarget(absl::StrFormat("/proc/self/fd/%d", ends[0]));
  REQUIRE(pipe_name.starts_with("pipe:["));
  const auto with_file = [&](int fd) { return absl::StrFormat("%d (%s)", fd, pipe_name); };
  const auto word = [](auto value) { return static_cast<uint64_t>(value); };
  CHECK(DescribeCall(SYS_read, Arguments{word(ends[0])}, tid) == "read of descriptor " + with_file(ends[0]));
  std::array<pollfd, 4> polled{{{ends[0], POLLIN, 0}, {ends[1], POLLOUT, 0}, {-1, 0, 0}, {-1, 0, 0}}};
  const auto poll_of = [&](uint64_t count) {
    return DescribeCall(SYS_ppoll, Arguments{reinterpret_cast<uintptr_t>(polled.data()), count}, tid);
  };
  CHECK(poll_of(1) == "poll of descriptor " + with_file(ends[0]));
  CHECK(poll_of(2) == "poll of 2 descriptors: " + with_file(ends[0]) + ", " + with_file(ends[1]));
  CHECK(poll_of(4) == "poll of 4 descriptors: " + with_file(ends[0]) + ", " + with_file(ends[1]) + ", -1, ...");
  close(ends[0]), close(ends[1]);
  CHECK(DescribeCall(SYS_read, Arguments{word(ends[0])}, tid) == absl::StrFormat("read of descriptor %d", ends[0]));
}

TEST_CASE("a FIFO is told as that, and a file is not", "[describe_call]") {
  std::string folder = "/tmp/perfkit-fifo-XXXXXX";
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  const std::string fifo = folder + "/in", file = folder + "/file";
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  const int ends[] = {open(fifo.c_str(), O_RDWR), open(file.c_str(), O_RDWR | O_CREAT, 0600)};
  const auto tid = static_cast<pid_t>(syscall(SYS_gettid));
  const auto text = [&](int fd) { return DescribeCall(SYS_read, Arguments{static_cast<uint64_t>(fd)}, tid); };
  CHECK(text(ends[0]) == absl::StrFormat("read of descriptor %d (FIFO %s)", ends[0], fifo));
  CHECK(text(ends[1]) == absl::StrFormat("read of descriptor %d (%s)", ends[1], file));
  close(ends[0]), close(ends[1]);
  unlink(fifo.c_str()), unlink(file.c_str()), rmdir(folder.c_str());
}

TEST_CASE("locks of files are no other waits for a descriptor", "[describe_call]") {
  for (const uint64_t command : {F_SETLKW, F_OFD_SETLKW}) {
    CHECK(DescribeCall(SYS_fcntl, Arguments{3, command}) == "file lock of descriptor 3");
    CHECK(AwaitedThingOf(SYS_fcntl, Arguments{3, command}) == AwaitedThing::kFileLock);
  }
  CHECK(DescribeCall(SYS_flock, Arguments{3}) == "file lock of descriptor 3");
  CHECK(AwaitedThingOf(SYS_flock, Arguments{3}) == AwaitedThing::kFileLock);
  CHECK(AwaitedThingOf(SYS_fcntl, Arguments{3, F_SETFL}) == AwaitedThing::kOther);
  CHECK(DescribeCall(SYS_fcntl, Arguments{3, F_SETFL}) == absl::StrFormat("system call %d", SYS_fcntl));
}

TEST_CASE("calls that are younger than some C libraries have words", "[describe_call]") {
  constexpr int64_t kIoUringEnter = 426, kEpollPwait2 = 441, kFutexWaitv = 449;
  struct {
    uint64_t value, address;
    uint32_t flags, reserved;
  } const waiters[] = {{1, 0x7f12, 2, 0}, {1, 0x7f16, 2, 0}, {1, 0x7f20, 2, 0}, {1, 0x7f24, 2, 0}};
  const auto tid = static_cast<pid_t>(syscall(SYS_gettid));
  const auto futexes = [&](uint64_t count) {
    return DescribeCall(kFutexWaitv, Arguments{reinterpret_cast<uintptr_t>(waiters), count}, tid);
  };
  CHECK(futexes(1) == "one of 1 futex 0x7f12");
  CHECK(futexes(2) == "one of 2 futexes 0x7f12 0x7f16");
  CHECK(futexes(4) == "one of 4 futexes 0x7f12 0x7f16 0x7f20 ...");
  CHECK(DescribeCall(kFutexWaitv, Arguments{8, 2}, tid) == "one of 2 futexes");
  CHECK(AwaitedThingOf(kFutexWaitv, Arguments{8, 2}) == AwaitedThing::kFutex);
  CHECK(DescribeCall(kEpollPwait2, Arguments{4}) == "epoll descriptor 4");
  CHECK(DescribeCall(kIoUringEnter, Arguments{5}) == "io_uring of descriptor 5");
  for (const int64_t call : {kEpollPwait2, kIoUringEnter}) {
    CHECK(AwaitedThingOf(call, Arguments{5}) == AwaitedThing::kDescriptor);
  }
#if defined(SYS_futex_waitv)
  CHECK(kFutexWaitv == SYS_futex_waitv);
#endif
}

TEST_CASE("an array of descriptors that is not there is counted only", "[describe_call]") {
  const auto tid = static_cast<pid_t>(syscall(SYS_gettid));
  CHECK(DescribeCall(SYS_ppoll, Arguments{8, 3}, tid) == "poll of 3 descriptors");
  CHECK(DescribeCall(SYS_ppoll, Arguments{UINT64_MAX - 7, UINT64_MAX}, tid) ==
        absl::StrFormat("poll of %d descriptors", UINT64_MAX));
}

}  // namespace
}  // namespace perfkit::sys
