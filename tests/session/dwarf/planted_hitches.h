// Hitches of eight kinds, whose truth is measured where they are planted: by the kernel's account of the time that a
// thread waited for a CPU (schedstat), by its time on one (task-clock), and by the clock.
#pragma once

#include <fcntl.h>
#include <linux/perf_event.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cinttypes>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "perfkit/frame_counter.h"
#include "src/sys/clock.h"
#include "tests/session/support.h"

namespace perfkit::session {

enum class Plant : uint8_t { kLock, kPageFaults, kPreemption, kInversion, kRead, kMoreWork, kAllocator, kLateWorker };
inline constexpr std::array<const char*, 8> kPlantNames = {"lock", "page faults", "preemption", "priority inversion",
                                                           "read", "more work",   "allocator",  "late worker"};

inline uint64_t NowNs() { return sys::ClockNs(CLOCK_MONOTONIC); }
inline pid_t OwnTid() { return static_cast<pid_t>(syscall(SYS_gettid)); }
inline void SleepNs(uint64_t ns) { std::this_thread::sleep_for(std::chrono::nanoseconds(ns)); }

// Computes in user space, for so long by the thread's own clock, which is a system call: seldom read.
[[gnu::noinline]] inline void Compute(uint64_t cpu_ns) {
  const uint64_t end_ns = sys::ClockNs(CLOCK_THREAD_CPUTIME_ID) + cpu_ns;
  while (sys::ClockNs(CLOCK_THREAD_CPUTIME_ID) < end_ns) {
    for (int i = 0; i < 20'000; ++i) asm volatile("");
  }
}

// The kernel's account of a thread of this process: its time on a CPU, how long it has waited for one (once that has
// ended), and how often it was put on one.
struct ThreadAccount {
  uint64_t cpu_ns = 0, delay_ns = 0, runs = 0;
};

inline ThreadAccount AccountOf(pid_t tid) {
  char path[64], text[128] = "";
  std::snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", tid);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0 || read(file, text, sizeof(text) - 1) <= 0) text[0] = '\0';
  close(file);
  ThreadAccount account;
  std::sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64, &account.cpu_ns, &account.delay_ns, &account.runs);
  return account;
}

inline uint64_t RunDelayNs(pid_t tid) { return AccountOf(tid).delay_ns; }

// The calling thread's time on a CPU, with what the hypervisor took from it meanwhile: CLOCK_THREAD_CPUTIME_ID is
// without that, which would then look like time off the CPU.
class OnCpuClock {
 public:
  OnCpuClock() {
    perf_event_attr attr{};
    attr.size = sizeof(attr);
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_TASK_CLOCK;
    attr.exclude_kernel = attr.exclude_hv = 1;  // which this count does not heed
    file_ = static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
    if (file_ < 0) std::abort();
  }
  ~OnCpuClock() { close(file_); }
  OnCpuClock(const OnCpuClock&) = delete;
  OnCpuClock& operator=(const OnCpuClock&) = delete;

  uint64_t Ns() const {
    uint64_t ns = 0;
    if (read(file_, &ns, sizeof(ns)) != sizeof(ns)) std::abort();
    return ns;
  }

 private:
  int file_ = -1;
};

// What hypervisors took from all CPUs, in ticks of 10 ms (proc(5), /proc/stat). No thread's account shows it.
inline uint64_t StolenTicks() {
  std::string line;
  std::getline(std::ifstream("/proc/stat"), line);
  uint64_t ticks = 0;
  std::sscanf(line.c_str(), "cpu %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &ticks);
  return ticks;
}

// What a plant really took.
struct PlantedTime {
  uint64_t ns = 0;
  uint64_t helper_preempted_ns = 0;  // the thread that it waited for was kept off the CPU; inversion: at least
  uint64_t own_delay_ns = 0;         // how long its own thread was, at least
  uint64_t blocked_ns = 0;           // how long its own thread was blocked in it
  // Of the frame's thread, in all of the frame and a little before.
  uint64_t preempted_ns = 0, cpu_ns = 0;
  ThreadAccount session{};    // of the session's thread meanwhile
  uint64_t stolen_ticks = 0;  // from all CPUs meanwhile
};

// The session's own thread; 0 if there is none.
inline pid_t SessionTid() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name == "perfkit-session") return std::stoi(task.path().filename());
  }
  return 0;
}

inline void PinTo(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  sched_setaffinity(0, sizeof(set), &set);
}

// A process that computes when it is told to, on one CPU, or now and then, on any.
class BusyProcess {
 public:
  explicit BusyProcess(std::optional<int> cpu, unsigned seed) {
    shared_ = mmap(nullptr, sizeof(Until), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared_ == MAP_FAILED || pipe2(ends_, O_CLOEXEC) != 0) std::abort();
    pid_ = fork();
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (cpu) {
      PinTo(*cpu);
      for (char byte = 0; read(ends_[0], &byte, 1) == 1;) SpinUntil();
    }
    for (std::mt19937 random(seed); !cpu;) {
      SleepNs(random() % 40'000'000);
      until() = NowNs() + random() % 20'000'000;
      SpinUntil();
    }
    _exit(0);
  }
  ~BusyProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(ends_[0]);
    close(ends_[1]);
    munmap(shared_, sizeof(Until));
  }
  BusyProcess(const BusyProcess&) = delete;
  BusyProcess& operator=(const BusyProcess&) = delete;

  void ComputeUntil(uint64_t until_ns) {
    until() = until_ns;
    (void)!write(ends_[1], "", 1);
  }

 private:
  using Until = std::atomic<uint64_t>;
  Until& until() { return *static_cast<Until*>(shared_); }
  void SpinUntil() {
    while (NowNs() < until()) {
    }
  }

  void* shared_ = nullptr;
  int ends_[2] = {-1, -1};
  pid_t pid_ = -1;
};

// A thread that does one job after the other.
class Helper {
 public:
  Helper(FrameCounter& frames, const char* name, std::function<void()> begin = {})
      : thread_([this, &frames, name, begin = std::move(begin)] {
          pthread_setname_np(pthread_self(), name);
          tid_ = OwnTid();
          const FrameCounter::AttachedThread attached = frames.AttachThread(name);
          if (begin) begin();
          Work();
        }) {
    while (tid_ == 0) SleepNs(100'000);
  }
  ~Helper() {
    Post({});
    thread_.join();
  }
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  pid_t tid() const { return tid_; }
  void Post(std::function<void()> job) {
    const std::lock_guard<std::mutex> lock(mutex_);
    job_ = std::move(job);
    has_job_ = true;
    is_done_ = false;
    changed_.notify_all();
  }
  void WaitUntilDone() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return is_done_; });
  }

 private:
  void Work() {
    for (;;) {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [&] { return has_job_; });
      has_job_ = false;
      const std::function<void()> job = std::move(job_);
      lock.unlock();
      if (!job) return;
      job();
      lock.lock();
      is_done_ = true;
      changed_.notify_all();
    }
  }

  std::atomic<pid_t> tid_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> job_;
  bool has_job_ = false, is_done_ = true;
  std::thread thread_;  // last: it uses the others
};

// Free chunks in the main thread's arena: a walk over all of them, with the arena's lock, takes some 25 ms. Those of
// each round are larger than all before, which would be taken again otherwise.
class FragmentedHeap {
 public:
  FragmentedHeap() {
    uint64_t walk_ns = 0;
    size_t bytes = kBytes;
    for (std::mt19937 random(1); walk_ns < kWalkNs && kept_.size() < kMaxChunks; bytes += kAlignment) {
      std::vector<void*> freed;
      for (int i = 0; i < 20'000; ++i) {
        freed.push_back(malloc(bytes));
        kept_.push_back(malloc(bytes));
      }
      std::ranges::shuffle(freed, random);
      for (void* const chunk : freed) free(chunk);
      free(malloc(kSortingBytes));  // puts them into their bin now
      const uint64_t from_ns = sys::ClockNs(CLOCK_THREAD_CPUTIME_ID);
      Walk();
      walk_ns = sys::ClockNs(CLOCK_THREAD_CPUTIME_ID) - from_ns;
    }
  }
  ~FragmentedHeap() {
    for (void* const chunk : kept_) free(chunk);
  }
  FragmentedHeap(const FragmentedHeap&) = delete;
  FragmentedHeap& operator=(const FragmentedHeap&) = delete;

  [[gnu::noinline]] static void Walk() {
    const volatile size_t free_chunks = mallinfo2().ordblks;
    (void)free_chunks;
  }
  // Takes the arena's lock: too large for the thread's cache, too small for a mapping of its own.
  [[gnu::noinline]] static void Allocate() {
    void* const memory = malloc(kSortingBytes);
    asm volatile("" : : "r"(memory) : "memory");
    free(memory);
  }

 private:
  static constexpr size_t kBytes = 150, kAlignment = 16, kSortingBytes = 20'000, kMaxChunks = 600'000;
  static constexpr uint64_t kWalkNs = 25'000'000;
  std::vector<void*> kept_;
};

}  // namespace perfkit::session
