// Waiting for a descriptor, for a time, for a call from elsewhere; and the thread that does so.
#include "src/sys/waiter.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "src/sys/worker_thread.h"
#include "tests/support/fake_kernel.h"

namespace perfkit::sys {
namespace {

constexpr int kForever = -1;

struct Pipe {
  Pipe() { REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0); }
  ~Pipe() { close(ends[0]), close(ends[1]); }
  std::array<int, 2> ends{};
};

TEST_CASE("a waiter returns for its descriptor, when it is woken, and after its time", "[waiter]") {
  const Pipe pipe;
  absl::StatusOr<Waiter> waiter = Waiter::Open(pipe.ends[0]);
  REQUIRE(waiter.status() == absl::OkStatus());
  waiter->Wait(0);
  waiter->Wait(1);
  waiter->Wake();
  waiter->Wake();
  waiter->Wait(kForever);  // woken before
  std::thread waker([&] { waiter->Wake(); });
  waiter->Wait(kForever);
  waker.join();
  REQUIRE(write(pipe.ends[1], "x", 1) == 1);
  waiter->Wait(kForever);
  waiter->Wait(kForever);  // it is still readable
}

TEST_CASE("a waiter that is woken more often than its pipe holds goes on", "[waiter]") {
  const Pipe pipe;
  absl::StatusOr<Waiter> waiter = Waiter::Open(pipe.ends[0]);
  REQUIRE(waiter.status() == absl::OkStatus());
  for (int i = 0; i < 100'000; ++i) waiter->Wake();
  waiter->Wait(kForever);
}

TEST_CASE("a waiter that cannot be opened leaves nothing open", "[waiter]") {
  const Pipe pipe;
  const perfkit::testing::SweepTally tally =
      perfkit::testing::SweepFaults([&] { return Waiter::Open(pipe.ends[0]).status(); });
  CHECK(tally.refused > 0);
}

TEST_CASE("a waiter without a descriptor is answered with the limit", "[waiter]") {
  perfkit::testing::FakeKernel fake;
  for (const auto call : {perfkit::testing::Call::kPipe, perfkit::testing::Call::kEpollCreate}) {
    fake.FailAll(call, EMFILE);
    const std::string text(Waiter::Open().status().message());
    fake.Forgive();
    CHECK(text.ends_with(": Too many open files. Remedy: raise the limit on descriptors (ulimit -n), or close some."));
  }
}

TEST_CASE("a waiter whose descriptors were closed sleeps instead, so that a loop takes no CPU", "[waiter]") {
  static std::vector<int64_t> slept_ms;
  slept_ms.clear();
  perfkit::testing::FakeKernel fake;
  fake.below().nanosleep = [](const timespec* time) {
    slept_ms.push_back(time->tv_sec * 1000 + time->tv_nsec / 1'000'000);
    return 0;
  };
  absl::StatusOr<Waiter> waiter = Waiter::Open();
  REQUIRE(waiter.status() == absl::OkStatus());
  fake.FailAll(perfkit::testing::Call::kEpollWait, EBADF);
  for (const int timeout_ms : {0, 4, 5000, kForever}) waiter->Wait(timeout_ms);
  CHECK(slept_ms == std::vector<int64_t>{0, 4, 100, 100});
  fake.FailAll(perfkit::testing::Call::kEpollWait, EINTR);
  waiter->Wait(5000);
  CHECK(slept_ms.size() == 4);
}

TEST_CASE("a worker has its name, and none of the program's signals", "[worker_thread]") {
  std::string name;
  sigset_t blocked;
  sigemptyset(&blocked);
  WorkerThread worker;
  REQUIRE(worker.Start("perfkit-test", [&] {
    std::array<char, 16> text{};
    pthread_getname_np(pthread_self(), text.data(), text.size());
    name = text.data();
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  }) == absl::OkStatus());
  worker.Join();
  worker.Join();
  CHECK(name == "perfkit-test");
  for (const int signal : {SIGINT, SIGTERM, SIGPROF, SIGALRM, SIGUSR1, SIGCHLD})
    CHECK(sigismember(&blocked, signal) == 1);
  for (const int signal : {SIGTRAP, SIGSEGV, SIGBUS}) CHECK(sigismember(&blocked, signal) == 0);
  sigset_t own;
  pthread_sigmask(SIG_SETMASK, nullptr, &own);
  CHECK(sigismember(&own, SIGINT) == 0);
}

TEST_CASE("a worker that was never started is joined at once", "[worker_thread]") { WorkerThread().Join(); }

}  // namespace
}  // namespace perfkit::sys
