// What threads wait for, in words.
#include "src/sys/describe_call.h"

#include <poll.h>
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

TEST_CASE("an array of descriptors that is not there is counted only", "[describe_call]") {
  const auto tid = static_cast<pid_t>(syscall(SYS_gettid));
  CHECK(DescribeCall(SYS_ppoll, Arguments{8, 3}, tid) == "poll of 3 descriptors");
  CHECK(DescribeCall(SYS_ppoll, Arguments{UINT64_MAX - 7, UINT64_MAX}, tid) ==
        absl::StrFormat("poll of %d descriptors", UINT64_MAX));
}

}  // namespace
}  // namespace perfkit::sys
