// Samples in the program's own event loop: one epoll for the program's timer and for the sampler's rings.
//
//   drain [SECONDS]       samples all threads of this program, and prints the number of samples at times
#include <absl/strings/str_format.h>
#include <perfkit/sampler.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <string>
#include <thread>

#include "tool/arguments.h"
#include "tool/output.h"

namespace {

constexpr tool::Usage kUsage = {"drain", "usage: drain [SECONDS]\n  samples its own threads for SECONDS (1)\n", 1};

// The work that is sampled.
void Work(const std::atomic<bool>& stop) {
  volatile double x = 1;
  while (!stop) x = x * 1.0000001 + 1;
}

bool Watch(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

// Runs until the timer has ticked `ticks` times. Rings wake the loop at their watermark; each tick drains the rest.
uint64_t Loop(perfkit::Sampler& sampler, int epoll, int timer, int ticks) {
  uint64_t samples = 0;
  const auto count = [&](const perfkit::SamplerRecord& record) {
    perfkit::Dispatch(record, sampler.layout(), [&](const perfkit::Sample&) { ++samples; });
  };
  sampler.Drain(count);  // what is in the rings already
  while (ticks > 0) {
    epoll_event ready{};
    if (epoll_wait(epoll, &ready, 1, -1) != 1) continue;  // a signal came
    if (ready.data.fd == timer) {
      uint64_t passed = 0;
      if (read(timer, &passed, sizeof(passed)) == sizeof(passed)) ticks -= static_cast<int>(passed);
    }
    sampler.Drain(count);
  }
  return samples;
}

int Fail(const std::string& why) {
  std::fprintf(stderr, "drain: %s\n", why.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  tool::ReserveStandardStreams();
  const double seconds = tool::SecondsArgument(kUsage, argc, argv, 1);
  const int ticks = std::max(1, static_cast<int>(std::lround(10 * seconds)));
  std::atomic<bool> stop{false};
  std::thread worker(Work, std::cref(stop));
  auto sampler = perfkit::Sampler::Open(
      {.events = {{.event = "cpu-clock:u", .rate = perfkit::Frequency{1000}}}, .watermark_bytes = 4096},
      perfkit::Target::AllThreads());
  int status = 1;
  const int epoll = epoll_create1(EPOLL_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  const itimerspec tenth{{0, 100'000'000}, {0, 100'000'000}};
  if (!sampler.ok()) {
    status = Fail(sampler.status().ToString());
  } else if (!Watch(epoll, sampler->poll_fd()) || !Watch(epoll, timer) ||
             timerfd_settime(timer, 0, &tenth, nullptr) != 0) {
    status = Fail("cannot wait");
  } else if (const absl::Status started = sampler->Start(); !started.ok()) {
    status = Fail(started.ToString());
  } else {
    const uint64_t samples = Loop(*sampler, epoll, timer, ticks);
    const perfkit::SamplerStats stats = sampler->stats();
    const double percent = 100 * static_cast<double>(stats.own_cpu_ns) / (1e8 * ticks);
    const std::string text =
        absl::StrFormat("%d samples, %d lost, %.2f %% of a CPU to read them\n", samples, stats.events[0].lost, percent);
    status = tool::PrintText("drain", text) ? 0 : 1;
  }
  stop = true;
  worker.join();
  close(timer);
  close(epoll);
  return status;
}
