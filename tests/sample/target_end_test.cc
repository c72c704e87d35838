// The end of a target: told by no record without a side band, and not before the last child has ended.
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/sample/support.h"
#include "tests/support/fake_kernel.h"

namespace perfkit {
namespace {

using Rings = SamplerOptions::Rings;

// A pipe whose reader goes on once the writer lets it.
class Gate {
 public:
  Gate() { valid_ = pipe(fds_) == 0; }
  ~Gate() {
    Open();
    close(fds_[0]);
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // To be called in each child, which would keep the gate shut.
  void LeaveToParent() { close(fds_[1]); }
  void Wait() {
    char byte;
    while (read(fds_[0], &byte, 1) > 0) {
    }
  }
  void Open() {
    if (valid_) close(fds_[1]);
    valid_ = false;
  }

 private:
  int fds_[2] = {-1, -1};
  bool valid_ = false;
};

// A process that has a child, each of which ends when it is told to.
class ParentAndChild {
 public:
  ParentAndChild() : pid_(fork()) {
    if (pid_ != 0) return;
    for (Gate* const gate : {&fork_, &first_end_, &second_end_}) gate->LeaveToParent();
    fork_.Wait();
    if (fork() == 0) {
      second_end_.Wait();
      _exit(0);
    }
    first_end_.Wait();
    _exit(0);
  }
  ~ParentAndChild() {
    EndFirst();
    second_end_.Open();
  }
  ParentAndChild(const ParentAndChild&) = delete;
  ParentAndChild& operator=(const ParentAndChild&) = delete;

  pid_t pid() const { return pid_; }
  // Forks, then ends the first process.
  void EndFirst() {
    fork_.Open();
    first_end_.Open();
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  void EndSecond() { second_end_.Open(); }

 private:
  Gate fork_, first_end_, second_end_;
  pid_t pid_;
};

void DrainUntilEnded(Sampler& sampler) {
  while (!sampler.target_ended()) {
    usleep(1000);
    testing::DrainAll(sampler);
  }
}

TEST_CASE("a process has ended once all that is sampled of it has", "[target_end][law]") {
  ParentAndChild family;
  SamplerOptions options = testing::FaultOptions(16 << 10);
  options.rings = GENERATE(Rings::kPerCpu, Rings::kPerThread);
  options.side_band = GENERATE(false, true);
  CAPTURE(options.rings, options.side_band);
  auto sampler = Sampler::Open(options, Target::Process(family.pid()));
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  for (int i = 0; i < 3; ++i) {
    testing::DrainAll(*sampler);
    CHECK_FALSE(sampler->target_ended());
  }
  family.EndFirst();
  if (options.rings == Rings::kPerCpu) {  // Its child is sampled.
    for (int i = 0; i < 5; ++i) {
      usleep(1000);
      testing::DrainAll(*sampler);
      CHECK_FALSE(sampler->target_ended());
    }
    family.EndSecond();
  }
  DrainUntilEnded(*sampler);
  REQUIRE(sampler->Stop().ok());
  testing::DrainAll(*sampler);
  CHECK(sampler->target_ended());
  testing::CheckAccountingBalances(sampler->stats());
}

TEST_CASE("a stopped sampler, which has no record of it, finds the end", "[target_end][law]") {
  ParentAndChild family;
  auto sampler = Sampler::Open(testing::FaultOptions(16 << 10), Target::Process(family.pid()));
  REQUIRE(sampler.ok());
  testing::DrainAll(*sampler);
  CHECK_FALSE(sampler->target_ended());
  family.EndFirst();
  testing::DrainAll(*sampler);
  CHECK_FALSE(sampler->target_ended());  // A disabled event is inherited, too.
  family.EndSecond();
  DrainUntilEnded(*sampler);
}

TEST_CASE("who waits for records is woken by the end of the target", "[target_end][law]") {
  ParentAndChild family;
  auto sampler = Sampler::Open(testing::FaultOptions(16 << 10), Target::Process(family.pid()));
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  family.EndFirst();
  for (int i = 0; i < 5; ++i) testing::DrainAll(*sampler);
  CHECK_FALSE(sampler->target_ended());
  family.EndSecond();
  while (!sampler->target_ended()) {
    pollfd waits{sampler->poll_fd(), POLLIN, 0};
    REQUIRE(poll(&waits, 1, -1) == 1);
    testing::DrainAll(*sampler);
  }
}

// The threads of targets are preempted before their events end: this many looks find them alive. And the sampler can't
// wait for a further descriptor.
int g_preempted = 0, g_full_epoll = -1;
int WaitWhilePreempted(int epoll, epoll_event* events, int most, int timeout_ms) {
  if (g_preempted > 0) return --g_preempted, 0;
  return sys::kLinux.epoll_wait(epoll, events, most, timeout_ms);
}
int ControlFull(int epoll, int operation, int fd, epoll_event* event) {
  if (epoll == g_full_epoll && operation == EPOLL_CTL_ADD) return errno = ENOSPC, -1;
  return sys::kLinux.epoll_ctl(epoll, operation, fd, event);
}

TEST_CASE("a thread that is preempted between its EXIT record and its end has ended", "[target_end][law]") {
  ParentAndChild family;
  SamplerOptions options = testing::FaultOptions(16 << 10);
  options.side_band = true;
  auto sampler = Sampler::Open(options, Target::Process(family.pid()));
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  testing::FakeKernel fake;
  fake.below().epoll_wait = WaitWhilePreempted;
  fake.below().epoll_ctl = ControlFull;
  g_full_epoll = sampler->poll_fd();
  for (int i = 0; i < 3; ++i) testing::DrainAll(*sampler);
  g_preempted = INT_MAX;
  family.EndFirst();
  family.EndSecond();
  for (int exits = 0; exits < 2;) {
    sampler->Drain([&](const SamplerRecord& record) {
      exits += record.type == static_cast<uint32_t>(RecordType::kExit) ? 1 : 0;
    });
  }
  for (int i = 0; i < 10; ++i) testing::DrainAll(*sampler);
  g_preempted = 0;
  DrainUntilEnded(*sampler);
}

TEST_CASE("a thread that ends while others live has ended", "[target_end][law]") {
  std::atomic<pid_t> tid = 0;
  std::atomic<bool> go = false;
  std::thread thread([&] {
    tid = gettid();
    while (!go) usleep(100);
  });
  while (tid == 0) std::this_thread::yield();
  const bool inherit = GENERATE(false, true);
  CAPTURE(inherit);
  Target target = Target::Thread(tid);
  target.inherit = inherit;
  auto sampler = Sampler::Open(testing::FaultOptions(16 << 10), target);
  const bool started = sampler.ok() && sampler->Start().ok();
  if (started) testing::DrainAll(*sampler);
  const bool too_early = started && sampler->target_ended();
  go = true;
  thread.join();
  REQUIRE(started);
  CHECK_FALSE(too_early);
  DrainUntilEnded(*sampler);
  auto own = Sampler::Open(testing::FaultOptions(16 << 10));
  REQUIRE(own.ok());
  testing::DrainAll(*own);
  CHECK_FALSE(own->target_ended());
}

}  // namespace
}  // namespace perfkit
