// The signal handler of live stacks: takes a stack in the signal of a sample, and counts skipped ones.
//
//   sample ── SIGTRAP ──> sys::SampleClaim ──> OnSample: a ring of this thread's ── Walk ──> a record in it
//
// A handler that takes longer than the time to the next sample would be entered again at once, and the thread would not
// advance. So after a walk of c nanoseconds, the thread's next walk begins at least 3 c later: walks take at most a
// quarter of the thread's time, and samples in between have no stack. Walks are timed by the wall clock, which is cheap
// but includes time off the CPU. After a walk that seems long, walks and pauses are timed by the thread's CPU time
// until they are short again.
//
// The kernel's part of a signal can't be skipped. If it alone takes until the next signal, the handler disables the
// event (ProgressWatch); the reader opens it again at a lower rate.
#pragma once

#include <sys/types.h>
#include <ucontext.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "perfkit/sampler_stats.h"
#include "perfkit/stack_frame.h"
#include "src/base/in_handler.h"
#include "src/sample/plan.h"
#include "src/sample/progress_watch.h"
#include "src/sample/signal_switches.h"
#include "src/sample/stack_rings.h"
#include "src/sys/handler_calls.h"
#include "src/sys/sample_signals.h"
#include "src/unwind/live_walker.h"

namespace perfkit::sample {

// Why a signal yields no stack.
enum class StackSkip : uint8_t { kStale, kWalkLimit, kNoRing, kRingFull, kPaused };
constexpr size_t kStackSkips = 5;

class LiveStackHandler {
 public:
  static constexpr uint64_t kRest = 3;             // Pause after a walk, as a multiple of its time.
  static constexpr uint64_t kLongWalkNs = 50'000;  // Longer walks are timed by CPU time.

  struct Options {
    clockid_t clock = CLOCK_MONOTONIC;
    size_t events = 0;
    SampleLayout layout;
    StackRings::Shape shape;
  };
  // Ends the claim and waits until no handler is running. If one does not end, its memory is leaked.
  struct Ending {
    void operator()(LiveStackHandler* handler) const;
  };
  using Owner = std::unique_ptr<LiveStackHandler, Ending>;
  // Returns a handler that takes signals. Errors: those of SampleClaim; ResourceExhausted if memory runs out.
  static absl::StatusOr<Owner> Make(std::unique_ptr<unwind::LiveWalker> walker, const Options& options);

  LiveStackHandler(unwind::LiveWalker* walker, const Options& options, StackRings rings);

  // Returns attr.sig_data without the event's SignalNumber.
  uint64_t SigData() const { return claim_->SigData(0); }
  // Returns what a signal costs the calling thread, in nanoseconds; 0 if that can't be measured.
  uint64_t MeasureSignalNs() const { return claim_->MeasureCostNs(UINT32_MAX); }
  // SampleClaim::reused_descriptors.
  uint64_t reused_descriptors() const { return claim_->reused_descriptors(); }

  absl::Status Maintain() { return walker_->Maintain(); }
  absl::Status MaintainBriefly() { return walker_->MaintainBriefly(); }
  // Sets the maximum number of frames of later walks.
  void Limit(uint32_t frames) { rings_.Limit(frames); }
  void Pause(bool pause);
  // Returns the descriptors that the handler may disable.
  SignalSwitches& switches() { return switches_; }
  // Returns when the handler first disabled an event since the last call; 0 if it has not.
  uint64_t TakeSwitchedOffNs() { return __atomic_exchange_n(&switched_off_ns_, 0, __ATOMIC_RELAXED); }
  uint64_t skipped(size_t event, StackSkip why) const;
  StackRings& rings() { return rings_; }

  // Releases the claim in a forked child.
  void OnForkedChild() {
    claim_->OnForkedChild();
    switches_.OnForkedChild();
  }

 private:
  // Called by the signal's dispatcher, in a signal handler, as are the methods up to Write.
  static void OnSample(void* self, uint32_t number, bool stale, const ucontext_t& registers);
  // Disables the event if its signals keep the thread from advancing.
  void Guard(pid_t tid, uint32_t number, bool stale, uint64_t now_ns, const ucontext_t& registers);
  // Walks the stack and writes its record.
  void Take(StackRing& ring, uint32_t number, const ucontext_t& registers);
  // Counts a signal without a stack.
  void Skip(uint32_t number, StackSkip why);
  // Returns true if the last walk was too recent. `cpu_ns` is the thread's CPU time, while its walks are watched.
  bool Rests(const StackRing& ring, uint64_t cpu_ns) const;
  // Returns the time by the clock of the records.
  PERFKIT_IN_HANDLER uint64_t Now() const { return sys::HandlerNow(clock_) - clock_offset_ns_; }
  // Measures a walk, and determines when the next one may begin.
  void Account(StackRing& ring, uint64_t cpu_ns);
  void Write(StackRing& ring, uint32_t number, const UnwoundStack& stack);

  unwind::LiveWalker* walker_;  // Owned by the caller or by owned_walker_.
  const clockid_t clock_;
  const uint64_t clock_offset_ns_;
  const uint32_t events_;
  const uint32_t pid_;
  uint32_t paused_ = 0;
  StackRings rings_;
  ProgressWatch progress_;
  SignalSwitches switches_;
  uint64_t switched_off_ns_ = 0;
  // Handlers read plain arrays only: PERFKIT_IN_HANDLER.
  Field trailer_[detail::kTrailer.size()];
  uint32_t trailer_fields_ = 0;
  std::unique_ptr<uint64_t[]> skipped_owned_;
  uint64_t* skipped_;  // By event, then by reason.
  std::unique_ptr<unwind::LiveWalker> owned_walker_;
  std::optional<sys::SampleClaim> claim_;  // Declared last: signals arrive only after everything that they use exists.
};

}  // namespace perfkit::sample
