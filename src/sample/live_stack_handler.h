// Takes stacks in the signals of samples: the handler's side of live stacks, and the counts that it keeps.
//
//   sample ── SIGTRAP ──> sys::SampleClaim ──> OnSample: a ring of this thread's ── Walk ──> a record in it
//
// A handler must not take the thread's whole time: what takes longer than the time to the next sample would be entered
// again as soon as it was left. So after a walk of c nanoseconds the thread's next one begins 3 c later at the
// earliest: walks take a quarter of the thread's time at most, and samples in between have no stack. Time is the
// clock's, which is cheap, and goes on while the thread is off its CPU: after a walk that seems long, walks and rests
// are measured by the thread's CPU time, until they have proved to be short.
#pragma once

#include <sys/types.h>
#include <ucontext.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "perfkit/sampler.h"
#include "src/sample/plan.h"
#include "src/sample/stack_rings.h"
#include "src/sys/sample_signals.h"
#include "src/unwind/live_walker.h"

namespace perfkit::sample {

// Why a signal gave no stack.
enum class StackSkip : uint8_t { kStale, kBudget, kNoRing, kRingFull, kPaused };
constexpr size_t kStackSkips = 5;

class LiveStackHandler {
 public:
  static constexpr uint64_t kRest = 3;             // times what the last walk took
  static constexpr uint64_t kLongWalkNs = 50'000;  // from here on it is measured by CPU time

  struct Options {
    clockid_t clock = CLOCK_MONOTONIC;
    size_t events = 0;
    SampleLayout layout;
    StackRings::Shape shape;
  };
  // Ends the claim, and waits until no handler is under way. Where one stays so, what it uses is left to it.
  struct Ending {
    void operator()(LiveStackHandler* handler) const;
  };
  using Owner = std::unique_ptr<LiveStackHandler, Ending>;
  // Takes signals from then on. Errors: those of SampleClaim; ResourceExhausted without memory.
  static absl::StatusOr<Owner> Make(std::unique_ptr<unwind::LiveWalker> walker, const Options& options);

  LiveStackHandler(unwind::LiveWalker* walker, const Options& options, StackRings rings);

  // attr.sig_data, but for the event's SignalNumber.
  uint64_t SigData() const { return claim_->SigData(0); }

  absl::Status Maintain() { return walker_->Maintain(); }
  // At most so many frames from now on.
  void Limit(uint32_t frames) { rings_.Limit(frames); }
  void Pause(bool pause);
  uint64_t skipped(size_t event, StackSkip why) const;
  StackRings& rings() { return rings_; }

  // In the child of a fork.
  void OnForkedChild() { claim_->OnForkedChild(); }

 private:
  static void OnSample(void* self, uint32_t number, bool stale, const ucontext_t& registers);
  void Take(StackRing& ring, uint32_t number, const ucontext_t& registers);
  void Skip(uint32_t number, StackSkip why);
  bool Rests(const StackRing& ring, uint64_t cpu_ns) const;
  void Account(StackRing& ring, uint64_t cpu_ns);
  void Write(StackRing& ring, uint32_t number, const UnwoundStack& stack);

  unwind::LiveWalker* walker_;  // of whoever made this
  const clockid_t clock_;
  const uint32_t events_;
  const uint32_t pid_;
  uint32_t paused_ = 0;
  StackRings rings_;
  // What handlers read is in plain arrays: PERFKIT_IN_HANDLER.
  Field trailer_[detail::kTrailer.size()];
  uint32_t trailer_fields_ = 0;
  std::unique_ptr<uint64_t[]> skipped_owned_;
  uint64_t* skipped_;  // by event, then by reason
  std::unique_ptr<unwind::LiveWalker> owned_walker_;
  std::optional<sys::SampleClaim> claim_;  // last: nobody is told of a signal before all is there
};

}  // namespace perfkit::sample
