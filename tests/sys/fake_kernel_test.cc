// The fake table itself: what it counts, what it lets fail, which leaks it sees. Everything else rests on it.
#include "tests/support/fake_kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "src/sys/fd.h"
#include "src/sys/mapping.h"

namespace perfkit::testing {
namespace {

using sys::kernel;

TEST_CASE("the fake is in force while it lives, and forwards", "[fake][law]") {
  const sys::Kernel* const before = &kernel();
  {
    const FakeKernel fake;
    CHECK(&kernel() != before);
    CHECK(kernel().getpid() == getpid());
    timespec now;
    CHECK(kernel().clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    CHECK(now.tv_sec > 0);
    CHECK(fake.calls() == 1);
    CHECK(fake.calls(Call::kClockGettime) == 1);
    CHECK(fake.calls(Call::kRead) == 0);
  }
  CHECK(&kernel() == before);
}

TEST_CASE("the n-th call fails with the errno that was asked for, the others work", "[fake]") {
  FakeKernel fake;
  fake.FailNth(2, EMFILE);
  CHECK(sys::OwnedFd(kernel().open("/dev/null", O_RDONLY)));  // 1: open, then 2: its close, which works all the same
  CHECK(fake.struck() == Call::kClose);
  fake.FailNth(1, ENOSPC, Call::kOpen);
  rusage usage;
  CHECK(kernel().getrusage(RUSAGE_SELF, &usage) == 0);
  CHECK(kernel().open("/dev/null", O_RDONLY) == -1);
  CHECK(errno == ENOSPC);
  CHECK(fake.struck() == Call::kOpen);
  CHECK(sys::OwnedFd(kernel().open("/dev/null", O_RDONLY)));
  CHECK(fake.Leaks() == "");
}

TEST_CASE("a call fails from its n-th use on, so many times", "[fake_kernel]") {
  FakeKernel fake;
  fake.FailNth(2, EMFILE, Call::kFcntl, 2);
  const auto result = [] { return kernel().fcntl(0, F_GETFD, 0); };
  CHECK(result() >= 0);
  CHECK(result() == -1);
  CHECK(result() == -1);
  CHECK(result() >= 0);
  fake.FailNth(1, EMFILE, Call::kFcntl, FakeKernel::kAlways);
  for (int i = 0; i < 100; ++i) CHECK(result() == -1);
  fake.Forgive();
  CHECK(result() >= 0);
}

TEST_CASE("a read gives half of the bytes, or is at the end of the file", "[fake_kernel]") {
  FakeKernel fake;
  const int fd = kernel().open("/proc/self/stat", O_RDONLY);
  char bytes[8];
  fake.FailNth(1, FakeKernel::kHalf, Call::kRead);
  CHECK(kernel().read(fd, bytes, sizeof(bytes)) == 4);
  fake.FailNth(1, FakeKernel::kEnd, Call::kRead);
  CHECK(kernel().read(fd, bytes, sizeof(bytes)) == 0);
  CHECK(kernel().read(fd, bytes, sizeof(bytes)) == 8);
  kernel().close(fd);
}

TEST_CASE("all calls of a kind fail until they are forgiven", "[fake]") {
  FakeKernel fake;
  fake.FailAll(Call::kMmap, EPERM);
  CHECK(kernel().mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
  CHECK(errno == EPERM);
  CHECK(kernel().mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
  fake.Forgive();
  void* const at = kernel().mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(at != MAP_FAILED);
  CHECK(kernel().munmap(at, 4096) == 0);
  CHECK(fake.Leaks() == "");
}

TEST_CASE("a member can be given another behaviour", "[fake]") {
  FakeKernel fake;
  fake.below().geteuid = []() -> uid_t { return 65534; };
  CHECK(kernel().geteuid() == 65534);
}

TEST_CASE("leaks are told: descriptors, pipes, mappings, double closes", "[fake]") {
  FakeKernel fake;
  const int fd = kernel().open("/dev/null", O_RDONLY);
  CHECK(fake.Leaks().find("of open") != std::string::npos);
  CHECK(kernel().close(fd) == 0);
  CHECK(fake.Leaks() == "");
  int fds[2];
  REQUIRE(kernel().pipe2(fds, O_CLOEXEC) == 0);
  CHECK(kernel().close(fds[0]) == 0);
  CHECK(fake.Leaks().find("of pipe2") != std::string::npos);
  CHECK(kernel().close(fds[1]) == 0);
  void* const at = kernel().mmap(nullptr, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(fake.Leaks().find("8192 bytes") != std::string::npos);
  CHECK(kernel().munmap(at, 8192) == 0);
  CHECK(fake.Leaks() == "");
  CHECK(kernel().close(fds[1]) == -1);
  CHECK(fake.Leaks().find("not open") != std::string::npos);
}

TEST_CASE("calls are counted across threads", "[fake]") {
  FakeKernel fake;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 1000; ++i) sys::OwnedFd(kernel().open("/dev/null", O_RDONLY));
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(fake.calls(Call::kOpen) == 4000);
  CHECK(fake.calls() == 8000);
  CHECK(fake.Leaks() == "");
}

TEST_CASE("a sweep strikes every call once for each errno", "[fake][law]") {
  const SweepTally tally = SweepFaults([] {
    const sys::OwnedFd fd(kernel().open("/dev/zero", O_RDONLY));
    if (!fd) return absl::ErrnoToStatus(errno, "open");
    char byte;
    if (kernel().read(fd.get(), &byte, 1) != 1) return absl::ErrnoToStatus(errno, "read");
    timespec now;
    kernel().clock_gettime(CLOCK_MONOTONIC, &now);  // optional
    return absl::OkStatus();
  });
  CHECK(tally.calls == 4 * kSweptErrors.size());     // open, read, clock_gettime, close
  CHECK(tally.refused == 2 * kSweptErrors.size());   // open, read
  CHECK(tally.survived == 2 * kSweptErrors.size());  // clock_gettime, close
}

}  // namespace
}  // namespace perfkit::testing
