// Generates records by page faults or system calls, at a steady rate.
#include "bench/sample/source.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

namespace bench {
namespace {

constexpr size_t kBurst = 1024;  // Records in about a millisecond.
constexpr size_t kPages = kBurst / 2, kPageBytes = 4096;

std::vector<perfkit::SampledEvent> CallEvents() {
  return {{.event = "syscalls:sys_enter_getppid"}, {.event = "syscalls:sys_exit_getppid"}};
}

std::vector<perfkit::SampledEvent> FaultEvents() { return {{.event = "page-faults:u"}, {.event = "minor-faults:u"}}; }

}  // namespace

double Seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

int AllowedCpu(int index) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return -1;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed) && index-- == 0) return cpu;
  }
  return -1;
}

void StayOn(int cpu) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(cpu, &only);
  sched_setaffinity(0, sizeof(only), &only);  // This thread.
}

void MountTracefs() {
  if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0) return;
  if (mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return;
  if (mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, nullptr) != 0) return;  // Then faults are used.
}

Source::Source(int cpu) : events_(CallEvents()) {
  perfkit::SamplerOptions options;
  options.events = events_;
  options.ring_bytes = 4096;
  calls_ = perfkit::Sampler::Open(options).ok();
  if (!calls_) events_ = FaultEvents();
  memory_ = static_cast<char*>(
      mmap(nullptr, kPages * kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  madvise(memory_, kPages * kPageBytes, MADV_NOHUGEPAGE);
  thread_ = std::thread([this, cpu] { Run(cpu); });
  while (tid_ == 0) std::this_thread::yield();
}

void Source::Stop() {
  stop_ = true;
  if (!thread_.joinable()) return;
  thread_.join();
  munmap(memory_, kPages * kPageBytes);
}

// Reads only: all pages map the zero page, so the kernel does not clear any.
void Source::Fault() {
  madvise(memory_, kPages * kPageBytes, MADV_DONTNEED);
  for (size_t i = 0; i < kPages; ++i) static_cast<void>(*static_cast<volatile char*>(memory_ + i * kPageBytes));
}

void Source::Call() {
  for (size_t i = 0; i < kBurst / 2; ++i) syscall(SYS_getppid);
}

void Source::Run(int cpu) {
  if (cpu >= 0) StayOn(cpu);
  tid_ = static_cast<pid_t>(syscall(SYS_gettid));
  while (!go_ && !stop_) std::this_thread::yield();
  constexpr timespec kPause{0, 50'000};
  constexpr double kBurstSeconds = kBurst / kRecordsPerSecond;
  // A delay is made up for at twice the rate, not at once, so that the benchmark does not depend on the depth of the
  // ring.
  double due = Seconds(CLOCK_MONOTONIC);
  while (!stop_) {
    const double begun = Seconds(CLOCK_MONOTONIC);
    calls_ ? Call() : Fault();
    due += kBurstSeconds;
    const double next = std::max(due, begun + kBurstSeconds / 2);
    while (!stop_ && Seconds(CLOCK_MONOTONIC) < next) nanosleep(&kPause, nullptr);
  }
}

}  // namespace bench
