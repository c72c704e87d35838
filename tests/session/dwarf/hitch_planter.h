// Plants one hitch after the other into the frames of the calling thread.
#pragma once

#include <memory>

#include "tests/session/dwarf/planted_hitches.h"
#include "tests/support/raw_user_share.h"

namespace perfkit::session {

// The processes first, then the session and its threads: a fork copies the calling thread alone.
class BusyProcesses {
 public:
  explicit BusyProcesses(unsigned seed) {
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof(allowed), &allowed);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(static_cast<unsigned>(cpu), &allowed)) continue;
      if (main_cpu_ < 0) main_cpu_ = cpu;
      low_cpu_ = cpu;
    }
    for (int i = 0; i < 8; ++i) beside_main_.push_back(std::make_unique<BusyProcess>(main_cpu_, seed));
    beside_low_ = std::make_unique<BusyProcess>(low_cpu_, seed);
    load_ = std::make_unique<BusyProcess>(std::nullopt, seed);
  }

  int main_cpu() const { return main_cpu_; }
  int low_cpu() const { return low_cpu_; }
  void ComputeBesideMain(uint64_t until_ns) {
    for (const auto& process : beside_main_) process->ComputeUntil(until_ns);
  }
  void ComputeBesideLow(uint64_t until_ns) { beside_low_->ComputeUntil(until_ns); }

 private:
  int main_cpu_ = -1, low_cpu_ = -1;
  std::vector<std::unique_ptr<BusyProcess>> beside_main_;
  std::unique_ptr<BusyProcess> beside_low_, load_;
};

// A file whose pages can be dropped from the kernel's cache.
class ColdFile {
 public:
  ColdFile() {
    char path[] = "/var/tmp/perfkit_cold_XXXXXX";
    file_ = mkostemp(path, O_CLOEXEC);
    if (file_ < 0) return;
    unlink(path);
    for (size_t i = 0; i < kPieces; ++i) (void)!write(file_, piece_.data(), piece_.size());
    fsync(file_);
  }
  ~ColdFile() { close(file_); }
  ColdFile(const ColdFile&) = delete;
  ColdFile& operator=(const ColdFile&) = delete;

  void Drop() const { posix_fadvise(file_, 0, 0, POSIX_FADV_DONTNEED); }
  // From places that no read-ahead expects.
  [[gnu::noinline]] void ReadUntil(uint64_t until_ns, std::mt19937& random) {
    while (NowNs() < until_ns) {
      (void)!pread(file_, piece_.data(), piece_.size(), static_cast<off_t>(random() % kPieces * piece_.size()));
    }
  }

 private:
  static constexpr size_t kPieces = 256;
  std::vector<char> piece_ = std::vector<char>(256 << 10, 'x');
  int file_ = -1;
};

class HitchPlanter {
 public:
  HitchPlanter(FrameCounter& frames, BusyProcesses& processes, unsigned seed)
      : frames_(frames), processes_(processes), random_(seed), worker_(frames, "worker"), low_(frames, "low", [this] {
          PinTo(processes_.low_cpu());
          const sched_param none{};
          sched_setscheduler(0, SCHED_IDLE, &none);
        }) {
    PinTo(processes.main_cpu());
    Prepare(Plant::kPageFaults, 0);
    user_share_of_faults_ = testing::UserShareOf([this] { TouchUntil(NowNs() + 20'000'000); });
    CleanUp(Plant::kPageFaults);
  }

  // What must be so before the frame begins, in an earlier one.
  void Prepare(Plant plant, uint64_t ns) {
    go_ = is_ready_ = false;
    switch (plant) {
      case Plant::kLock: return Post(worker_, [this, ns] { HoldLock(ns); });
      case Plant::kAllocator: return Post(worker_, [this, ns] { WalkHeap(ns); });
      case Plant::kInversion: return Post(low_, [this] { SignalLate(); });
      case Plant::kRead: return file_.Drop();
      case Plant::kPageFaults:
        memory_ = mmap(nullptr, kMemory, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory_ == MAP_FAILED) std::abort();
        madvise(memory_, kMemory, MADV_NOHUGEPAGE);
        return;
      default: return;
    }
  }

  PlantedTime Do(Plant plant, uint64_t ns) {
    const Helper& helper = plant == Plant::kInversion ? low_ : worker_;
    if (plant == Plant::kAllocator) AwaitWalk();
    const uint64_t from_ns = NowNs(), delayed_ns = RunDelayNs(OwnTid()), helper_ns = RunDelayNs(helper.tid());
    const uint64_t ran_ns = low_ran_ns_;
    const uint64_t cpu_ns = on_cpu_.Ns();
    switch (plant) {
      case Plant::kLock: WantLock(); break;
      case Plant::kPageFaults: TouchUntil(from_ns + ns); break;
      case Plant::kPreemption: BePreemptedUntil(from_ns + ns); break;
      case Plant::kInversion: WaitForLow(from_ns + ns); break;
      case Plant::kRead: file_.ReadUntil(from_ns + ns, random_); break;
      case Plant::kMoreWork: Compute(ns); break;
      case Plant::kAllocator: heap_.Allocate(); break;
      case Plant::kLateWorker: WaitForWorker(ns); break;
    }
    const uint64_t own_delay_ns = RunDelayNs(OwnTid()) - delayed_ns, passed_ns = NowNs() - from_ns;
    const uint64_t own_cpu_ns = on_cpu_.Ns() - cpu_ns;
    const uint64_t blocked_ns = passed_ns - std::min(passed_ns, own_delay_ns + own_cpu_ns);
    PlantedTime truth{.ns = blocked_ns,
                      .helper_preempted_ns = RunDelayNs(helper.tid()) - helper_ns,
                      .own_delay_ns = own_delay_ns,
                      .blocked_ns = blocked_ns};
    if (plant == Plant::kPageFaults || plant == Plant::kMoreWork) truth.ns = own_cpu_ns;
    if (plant == Plant::kPageFaults) {
      truth.ns -= static_cast<uint64_t>(user_share_of_faults_ * static_cast<double>(truth.ns));
    }
    if (plant == Plant::kPreemption) truth.ns = own_delay_ns;
    if (plant == Plant::kInversion) {
      // Its account has all of a time off the CPU once that has ended: also what was before. And it may have been off
      // while the frame's thread was, which did not wait for it then.
      const uint64_t not_waited_ns = from_ns - std::min(from_ns, ran_ns) + own_delay_ns;
      truth.helper_preempted_ns -= std::min(truth.helper_preempted_ns, not_waited_ns);
      truth.ns = std::min(blocked_ns, truth.helper_preempted_ns);
    }
    return truth;
  }

  uint64_t OnCpuNs() const { return on_cpu_.Ns(); }

  void CleanUp(Plant plant) {
    if (plant == Plant::kPageFaults) munmap(memory_, kMemory);
    worker_.WaitUntilDone();
    low_.WaitUntilDone();
  }

 private:
  static constexpr size_t kMemory = size_t{1} << 30;

  void Post(Helper& helper, std::function<void()> job) {
    helper.Post(std::move(job));
    while (!is_ready_) SleepNs(200'000);
  }
  void AwaitGo() {
    is_ready_ = true;
    while (!go_) SleepNs(200'000);
  }

  void HoldLock(uint64_t ns) {
    const std::lock_guard<std::mutex> lock(level_);
    AwaitGo();
    SleepNs(ns);
  }
  [[gnu::noinline]] void WantLock() {
    go_ = true;
    const std::lock_guard<std::mutex> lock(level_);
    asm volatile("");
  }
  void WalkHeap(uint64_t ns) {
    AwaitGo();
    for (const uint64_t until_ns = NowNs() + ns; NowNs() < until_ns;) {
      is_walking_ = true;
      FragmentedHeap::Walk();
    }
  }
  void AwaitWalk() {
    is_walking_ = false;
    go_ = true;
    while (!is_walking_) SleepNs(50'000);
  }
  // Runs when it is told to go on, and is kept off the CPU before it has.
  void SignalLate() {
    low_ran_ns_ = NowNs();
    is_ready_ = true;
    while (!go_) low_ran_ns_ = NowNs();
    const uint64_t delayed_ns = RunDelayNs(OwnTid()), from_ns = NowNs();
    while (RunDelayNs(OwnTid()) < delayed_ns + 1'000'000 && NowNs() < from_ns + 100'000'000) {
    }
  }
  void WaitForLow(uint64_t until_ns) {
    processes_.ComputeBesideLow(until_ns);
    go_ = true;
    low_.WaitUntilDone();
  }
  void WaitForWorker(uint64_t ns) {
    const bool computes = random_() % 2 == 0;
    worker_.Post([this, ns, computes] {
      PERFKIT_ZONE(frames_, "job");
      if (computes) Compute(ns);
      if (!computes) SleepNs(ns);
    });
    worker_.WaitUntilDone();
  }
  [[gnu::noinline]] void TouchUntil(uint64_t until_ns) {
    auto* const bytes = static_cast<volatile char*>(memory_);
    for (size_t at = 0; at < kMemory; at += 4096) {
      bytes[at] = 1;
      if (at % (64 << 12) == 0 && NowNs() >= until_ns) return;
    }
  }
  void BePreemptedUntil(uint64_t until_ns) {
    processes_.ComputeBesideMain(until_ns);
    while (NowNs() < until_ns) {
    }
  }

  FrameCounter& frames_;
  BusyProcesses& processes_;
  std::mt19937 random_;
  OnCpuClock on_cpu_;
  FragmentedHeap heap_;
  ColdFile file_;
  std::mutex level_;
  std::atomic<bool> go_{false}, is_ready_{false}, is_walking_{false};
  std::atomic<uint64_t> low_ran_ns_{0};  // when it was on a CPU last, before it was told to go on
  void* memory_ = nullptr;
  double user_share_of_faults_ = 0;  // of the time that touching new pages takes: no fault as far as samples show
  Helper worker_, low_;  // last: they use the others
};

}  // namespace perfkit::session
