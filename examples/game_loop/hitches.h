// The eight kinds of hitches that games have, planted one after the other: each is real, and perfkit has to name it.
#pragma once

#include <perfkit/frame_counter.h>

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace game {

// A process of its own that computes on one CPU when it is told to.
class BusyProcess {
 public:
  explicit BusyProcess(int cpu);
  ~BusyProcess();
  BusyProcess(const BusyProcess&) = delete;
  BusyProcess& operator=(const BusyProcess&) = delete;

  void Compute();

 private:
  int pipe_[2];
  int pid_;
};

// Free pieces all over the heap: a walk over them, with the allocator's lock, takes some 60 ms.
class FragmentedHeap {
 public:
  FragmentedHeap();
  ~FragmentedHeap();
  FragmentedHeap(const FragmentedHeap&) = delete;
  FragmentedHeap& operator=(const FragmentedHeap&) = delete;

  static void Walk();
  // Takes the allocator's lock.
  static void Allocate();

 private:
  std::vector<void*> kept_;
};

// Computes for so long. (A parameter of <chrono>'s would make its name unreadable in reports.)
void ComputeFor(int milliseconds);

class Hitches {
 public:
  static constexpr int kKinds = 8;
  static const char* Name(int kind);

  // Starts processes: no session may run yet.
  explicit Hitches(perfkit::FrameCounter& frames);
  ~Hitches();
  Hitches(const Hitches&) = delete;
  Hitches& operator=(const Hitches&) = delete;

  // In the frame before: whatever has to be there already. The calling thread is the one that marks frames.
  void Prepare(int kind);
  // In the frame.
  void Plant(int kind);
  // In the frame after it.
  void CleanUp();

 private:
  void Help(const char* name, void (Hitches::*job)());
  void HoldLevel();
  void FinishLate();
  void WalkHeap();
  void LoadAsset();
  void EnterLevel();
  void BePreempted();
  void WaitForLow();
  void ReadFile();
  void AllocateMemory();
  void WaitForAsset();

  perfkit::FrameCounter& frames_;
  int cpu_ = 0, other_cpu_ = 0;
  std::vector<std::unique_ptr<BusyProcess>> beside_main_;
  std::unique_ptr<BusyProcess> beside_low_;
  std::optional<FragmentedHeap> heap_;
  std::vector<char> piece_;
  std::mutex level_;
  std::promise<void> done_;
  std::atomic<bool> ready_{false}, go_{false};
  std::atomic<int> walks_{0};
  std::thread helper_;
  int file_ = -1;
};

}  // namespace game
