// Gives signals of sampled events to their samplers.
//
// An event that was opened with attr.sigtrap sends SIGTRAP to the thread that it samples, with 64 bits that its opener
// chose. They identify the event, because a handler of SIGTRAP sees the signals of all events:
//
//   63            48 47          32 31                    0
//   | this copy of  | claim, epoch | the event's own       |
//   | perfkit       |              | number                |
//
// Before Linux 5.13 there is no sigtrap: instead, a descriptor can be made to send the signal (F_SETSIG). The signal
// then names the descriptor, and a table maps it to the 64 bits.
//
// A signal may be under way when its event is closed and arrive much later, on a thread that had blocked it or slept.
// It then finds that its claim has ended or has another epoch; it is dropped and counted. The memory of claims is never
// freed.
#pragma once

#include <signal.h>
#include <ucontext.h>

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/base/in_handler.h"

namespace perfkit::sys {

// Handles a signal of the event with that number, on the sampled thread. `stale`: the thread had blocked SIGTRAP, or
// was in this handler, and has run on since the sample. Runs in the signal handler with all signals blocked: must make
// async-signal-safe calls only, none of them bound lazily. errno is preserved around it.
using SampleHandler = void (*)(void* self, uint32_t number, bool stale, const ucontext_t& registers);

// As long as it lives, signals of its events go to its handler, on any thread. Movable, not copyable.
class SampleClaim {
 public:
  // Errors: ResourceExhausted if 16 claims exist in this process, or ended while one of their calls did not return
  // (End); those of sigaction.
  static absl::StatusOr<SampleClaim> OfProcess(SampleHandler handler, void* self);

  SampleClaim(SampleClaim&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)), data_(other.data_) {}
  SampleClaim& operator=(SampleClaim&& other) noexcept {
    std::swap(slot_, other.slot_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~SampleClaim() { End(); }

  // Returns attr.sig_data for the event with that number.
  uint64_t SigData(uint32_t number) const { return data_ | number; }

  // Sends the calling thread eight signals of the event with that number, which the handler gets as stale ones. Returns
  // the shortest time that one took, in nanoseconds, from sending it to the return from the handler. 0 if the thread
  // blocks SIGTRAP, or is not permitted to send them (rt_tgsigqueueinfo, e.g. by a seccomp filter).
  uint64_t MeasureCostNs(uint32_t number) const;

  // Ends the claim: the handler is not called any more. Returns false if one of its calls has not returned for a
  // second, because its thread does not run; all that the handler uses must then stay forever. Thread-safe; not in the
  // handler.
  bool End();

  // In a forked child: ends the claim. No handler runs there.
  void OnForkedChild();

  // Makes event `fd` of thread `tid` signal its samples to that thread, without attr.sigtrap, with `data`, the SigData
  // of its number. The handler gets no `stale` flag for such signals, and one that was still pending when its
  // descriptor was closed is taken for a signal of the next event with that descriptor. So the reader must compare the
  // pc of the registers with the sample's (LiveStackReader::Take), and may get signals without a sample
  // (reused_descriptors). Errors: those of fcntl; ResourceExhausted for a descriptor beyond kMaxDescriptors, or without
  // memory.
  static absl::Status SignalBy(int fd, pid_t tid, uint64_t data);
  // Returns how many descriptors that had signalled for other events were given to SignalBy with data of this claim:
  // the maximum number of signals that the handler gets for samples of those other events. 0 once the claim has ended.
  uint64_t reused_descriptors() const;
  static constexpr int kMaxDescriptors = 1 << 20;

  struct Slot;

 private:
  SampleClaim(Slot* slot, uint64_t data) : slot_(slot), data_(data) {}
  Slot* slot_;
  uint64_t data_;
};

// Returns the number of signals that were dropped since the process began, because their claim had ended or they named
// none.
uint64_t LateSampleSignals();

// For the owner of SIGTRAP: returns true if it was a signal of a perfkit event; it has then been handled.
bool TakeSampleSignal(const siginfo_t& info, const ucontext_t& registers);

}  // namespace perfkit::sys
