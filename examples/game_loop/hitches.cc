// Each hitch takes some 60 ms, twice what a frame should take. What it needs is prepared in the frame before, so that
// the frame itself is slow for one reason. Helpers sleep until they are told to go: a thread that spins would be in the
// way of the game.
#include "hitches.h"

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "level.h"

namespace game {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds, std::chrono::milliseconds;

constexpr int kHitchMs = 60;
constexpr milliseconds kHitch(kHitchMs);
constexpr size_t kFaultBytes = size_t{192} << 20, kFileBytes = size_t{128} << 20, kPiece = size_t{1} << 20;
// Too much for the allocator's cache of a thread, too little for a mapping of its own.
constexpr size_t kLocked = 20'000;

void Pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  sched_setaffinity(0, sizeof(set), &set);
}

}  // namespace

[[gnu::noinline]] void ComputeFor(int milliseconds_to_end) {
  for (const auto end = Clock::now() + milliseconds(milliseconds_to_end); Clock::now() < end;) {
    for (int i = 0; i < 10'000; ++i) asm volatile("");
  }
}

BusyProcess::BusyProcess(int cpu) {
  if (pipe2(pipe_, O_CLOEXEC) != 0) std::abort();
  pid_ = fork();
  if (pid_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  Pin(cpu);
  for (char byte; read(pipe_[0], &byte, 1) == 1;) ComputeFor(kHitchMs);
  _exit(0);
}

BusyProcess::~BusyProcess() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  close(pipe_[0]);
  close(pipe_[1]);
}

void BusyProcess::Compute() { (void)!write(pipe_[1], "", 1); }

FragmentedHeap::FragmentedHeap() {
  constexpr size_t kPieces = 250'000, kBytes = 150;
  std::vector<void*> freed;
  for (size_t i = 0; i < kPieces; ++i) {
    freed.push_back(malloc(kBytes));
    kept_.push_back(malloc(kBytes));
  }
  std::shuffle(freed.begin(), freed.end(), std::mt19937(1));
  for (void* const piece : freed) free(piece);
  Allocate();  // sorts them
}

FragmentedHeap::~FragmentedHeap() {
  for (void* const piece : kept_) free(piece);
}

[[gnu::noinline]] void FragmentedHeap::Walk() {
  const volatile size_t pieces = mallinfo2().ordblks;
  (void)pieces;
}

[[gnu::noinline]] void FragmentedHeap::Allocate() {
  void* const memory = malloc(kLocked);
  asm volatile("" : : "r"(memory) : "memory");  // or else the compiler leaves out both calls
  free(memory);
}

const char* Hitches::Name(int kind) {
  constexpr const char* kNames[kKinds] = {"a lock held by a worker",      "a storm of page faults",
                                          "preemption by busy processes", "a priority inversion",
                                          "a read of a cold file",        "more work",
                                          "the allocator's lock",         "a late worker"};
  return kNames[kind];
}

Hitches::Hitches(perfkit::FrameCounter& frames) : frames_(frames), piece_(kPiece) {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof(allowed), &allowed);
  cpu_ = sched_getcpu();
  for (other_cpu_ = CPU_SETSIZE - 1; !CPU_ISSET(static_cast<unsigned>(other_cpu_), &allowed);) --other_cpu_;
  for (int i = 0; i < 8; ++i) beside_main_.push_back(std::make_unique<BusyProcess>(cpu_));
  beside_low_ = std::make_unique<BusyProcess>(other_cpu_);
  heap_.emplace();  // after the processes, which would share its pages until one of them writes
  char path[] = "/var/tmp/game_loop_XXXXXX";
  file_ = mkostemp(path, O_CLOEXEC);
  unlink(path);
  const std::vector<char> zeros(kFileBytes);
  (void)!write(file_, zeros.data(), zeros.size());
  fsync(file_);
}

Hitches::~Hitches() {
  CleanUp();
  close(file_);
}

void Hitches::Help(const char* name, void (Hitches::*job)()) {
  helper_ = std::thread([this, name, job] {
    pthread_setname_np(pthread_self(), name);
    const auto attached = frames_.AttachThread(name);
    (this->*job)();
    done_.set_value();
  });
  while (!ready_) std::this_thread::sleep_for(microseconds(100));
}

void Hitches::Prepare(int kind) {
  ready_ = go_ = false;
  walks_ = 0;
  done_ = {};
  switch (kind) {
    case 0: return Help("loader", &Hitches::HoldLevel);
    case 3: return Help("low", &Hitches::FinishLate);
    case 4: posix_fadvise(file_, 0, 0, POSIX_FADV_DONTNEED); return;
    case 6: return Help("statistics", &Hitches::WalkHeap);
    case 7: return Help("loader", &Hitches::LoadAsset);
    default: return;
  }
}

void Hitches::Plant(int kind) {
  go_ = true;
  switch (kind) {
    case 0: return EnterLevel();
    case 1: LoadLevelChunk(kFaultBytes); return;
    case 2: return BePreempted();
    case 3: return WaitForLow();
    case 4: return ReadFile();
    case 5: return ComputeFor(kHitchMs);
    case 6: return AllocateMemory();
    case 7: return WaitForAsset();
    default: return;
  }
}

void Hitches::CleanUp() {
  if (helper_.joinable()) helper_.join();
}

void Hitches::HoldLevel() {
  const std::lock_guard<std::mutex> lock(level_);
  ready_ = true;
  while (!go_) std::this_thread::sleep_for(microseconds(100));
  std::this_thread::sleep_for(kHitch);
}

void Hitches::EnterLevel() {
  const std::lock_guard<std::mutex> lock(level_);
  asm volatile("");
}

// Computes, so that the others share its CPU.
void Hitches::BePreempted() {
  cpu_set_t before;
  sched_getaffinity(0, sizeof(before), &before);
  Pin(cpu_);
  for (const auto& process : beside_main_) process->Compute();
  ComputeFor(kHitchMs);
  sched_setaffinity(0, sizeof(before), &before);
}

// A thread of the lowest priority: it computes little, but the busy process beside it goes first.
void Hitches::FinishLate() {
  const sched_param none{};
  sched_setscheduler(0, SCHED_IDLE, &none);
  Pin(other_cpu_);
  ready_ = true;
  while (!go_) {
  }
  ComputeFor(5);
}

void Hitches::WaitForLow() {
  beside_low_->Compute();
  done_.get_future().wait();
}

void Hitches::ReadFile() {
  std::mt19937 random(1);
  for (const auto end = Clock::now() + kHitch; Clock::now() < end;) {
    (void)!pread(file_, piece_.data(), piece_.size(), static_cast<off_t>(random() % (kFileBytes / kPiece) * kPiece));
  }
}

// What tools for the heap do.
void Hitches::WalkHeap() {
  ready_ = true;
  while (!go_) std::this_thread::sleep_for(microseconds(100));
  for (const auto end = Clock::now() + kHitch; Clock::now() < end;) {
    ++walks_;
    FragmentedHeap::Walk();
  }
}

// One piece in each walk. In a loop without pauses the lock would be taken each time before the walk has woken up.
void Hitches::AllocateMemory() {
  for (const auto end = Clock::now() + kHitch; Clock::now() < end;) {
    for (const int seen = walks_; walks_ == seen && Clock::now() < end;) std::this_thread::yield();
    std::this_thread::sleep_for(microseconds(100));  // until the walk has the lock
    FragmentedHeap::Allocate();
  }
}

void Hitches::LoadAsset() {
  PERFKIT_ZONE(frames_, "load asset");
  ready_ = true;
  while (!go_) std::this_thread::sleep_for(microseconds(100));
  ComputeFor(kHitchMs);
}

void Hitches::WaitForAsset() { done_.get_future().wait(); }

}  // namespace game
