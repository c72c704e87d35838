// Signals of sampled events: which sampler each of them is for.
//
// An event that was opened with attr.sigtrap sends SIGTRAP to the thread that it samples, with 64 bits of its opener's
// choice. They say whose it is, for whoever handles SIGTRAP sees all of them:
//
//   63            48 47          32 31                    0
//   | this copy of  | claim, epoch | the event's own       |
//   | perfkit       |              | number                |
//
// Before Linux 5.13 there is no sigtrap: a descriptor can be made to send the signal (F_SETSIG), which says that
// descriptor, and a table knows the 64 bits of it.
//
// A signal may be under way when its event is closed, and arrive long after: on a thread that had blocked it, or slept.
// It then finds its claim ended, or taken by another epoch, and is dropped and counted. The memory of claims stays.
#pragma once

#include <signal.h>
#include <ucontext.h>

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/base/in_handler.h"

namespace perfkit::sys {

// Of the event with that number, on the thread that was sampled. `stale`: the thread had blocked SIGTRAP, or was in
// this handler, and has gone on since the sample. Runs in the signal handler, with all signals blocked:
// async-signal-safe calls only, none of them bound lazily. errno is kept around it.
using SampleHandler = void (*)(void* self, uint32_t number, bool stale, const ucontext_t& registers);

// While it lives, signals of its events on any thread go to its handler. Moves, never copies.
class SampleClaim {
 public:
  // ResourceExhausted: 16 claims are alive in this process. Else what sigaction said.
  static absl::StatusOr<SampleClaim> OfProcess(SampleHandler handler, void* self);

  SampleClaim(SampleClaim&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)), data_(other.data_) {}
  SampleClaim& operator=(SampleClaim&& other) noexcept {
    std::swap(slot_, other.slot_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~SampleClaim() { End(); }

  // attr.sig_data of the event with that number.
  uint64_t SigData(uint32_t number) const { return data_ | number; }

  // From now on nobody calls the handler. False: a call has been under way for a second, on a thread that is not let
  // run; what it uses must stay for ever. Any thread, but not in the handler.
  bool End();

  // In the child of a fork: ends it; nothing is under way there.
  void OnForkedChild();

  // Has event `fd` of thread `tid` signal its samples to that thread, without attr.sigtrap, under `data`: SigData of
  // its number. The handler is never told that such a one is stale: its pc tells, which is not the sample's. What fcntl
  // said; ResourceExhausted for a descriptor above kMaxDescriptors, or without memory.
  static absl::Status SignalBy(int fd, pid_t tid, uint64_t data);
  static constexpr int kMaxDescriptors = 1 << 20;

  struct Slot;

 private:
  SampleClaim(Slot* slot, uint64_t data) : slot_(slot), data_(data) {}
  Slot* slot_;
  uint64_t data_;
};

// Signals for claims that had ended, and such as did not say for whom, which were dropped, since the process began.
uint64_t LateSampleSignals();

// For the owner of SIGTRAP: whether it was a signal of an event of ours. Then all is done.
bool TakeSampleSignal(const siginfo_t& info, const ucontext_t& registers);

}  // namespace perfkit::sys
