// Samples: where events happen, as records in rings that this process reads itself.
//
//   auto sampler = perfkit::Sampler::Open({.events = {{"cpu-clock", perfkit::Frequency{1000}}},
//                                          .stack = perfkit::CallStack::FramePointers()},
//                                         perfkit::Target::AllThreads());
//   absl::Status started = sampler->Start();
//   ...  // whenever sampler->poll_fd() is readable, or now and then:
//   sampler->Drain([&](const perfkit::SamplerRecord& record) {
//     perfkit::Dispatch(record, sampler->layout(), [](const perfkit::Sample& sample) { Use(*sample.ip()); });
//   });
//
// Each sample is delivered or accounted for. For events of period 1, once the sampler is stopped and drained:
// delivered + duplicates + lost + paused + malformed = what the kernel counted. With RingMode::kOverwrite that exceeds
// the sum by the samples that were overwritten: only their bytes are known (SamplerStats::overwritten_bytes).
#pragma once

#include "perfkit/detail/library_only.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "perfkit/live_stack.h"
#include "perfkit/sampler_options.h"
#include "perfkit/sampler_record.h"
#include "perfkit/sampler_stats.h"
#include "perfkit/target.h"

namespace perfkit {

namespace sample {
class SamplerImpl;
}

// Samples a target into rings. Movable, not copyable: a moved-from one may only be assigned to or destroyed. Not
// thread-safe: any thread may call it, one at a time. Not async-signal-safe.
//
// Nothing runs in the background: rings fill until Drain empties them. In a forked child the copy is empty: methods
// that return a Status return FailedPrecondition, Drain returns 0, and it may be destroyed. The child may open its own
// sampler.
class Sampler {
 public:
  using Event = SampledEvent;
  using Options = SamplerOptions;

  // Opens all events on all threads and CPUs of the target, stopped.
  // Errors: as CounterSet::Open; InvalidArgument also if options contradict each other, for an event that perf does not
  // have (measured_events.h), and without any event, unless side_band or switches is set; ResourceExhausted if not even
  // one page for each ring can be locked, or if descriptors run out (threads x CPUs x events; the message says how many
  // are needed).
  static absl::StatusOr<Sampler> Open(const SamplerOptions& options, Target target = Target::ThisThread());

  Sampler(Sampler&&) noexcept;
  Sampler& operator=(Sampler&&) noexcept;
  ~Sampler();

  // Start enables and Stop disables all events, in about 1 us for each event. Start also attaches threads that started
  // since Open. With side_band, the next Drain delivers the synthesized records, after the records of before this
  // start. If Start fails, all events are disabled. If Stop fails for one event, it still disables the others. After
  // Stop, Drain delivers what the rings still hold. A stopped event costs its thread a little at each context switch:
  // destroy the sampler to avoid that. Errors: FailedPrecondition in a forked child; ResourceExhausted if 64 starts
  // wait for a Drain; Internal if an ioctl fails.
  absl::Status Start();
  absl::Status Stop();
  // Pause stops and Resume restarts writing to the rings, cheap enough for each iteration of a loop. Events keep
  // counting; the samples that are not written count as EventAccounting::paused. SWITCH records are not written either;
  // the side band is not paused. Pausing a paused sampler has no effect, nor has resuming a running one. Errors: as
  // Start.
  absl::Status Pause();
  absl::Status Resume();
  // Changes the rate of event `event`, at once. If threads inherit the events (Target::AllThreads, Target::Process, and
  // Target::Thread with `inherit`, not with SamplerOptions::Rings::kPerThread), the next Drain changes it, for all
  // threads together; if that fails, each further Drain tries again (SamplerStats::decisions_refused). A stopped
  // sampler with empty rings changes it at once. A change by Drain leaves no gap, except with CallStack::Live or
  // RingMode::kOverwrite: then nothing is sampled while the rings are drained. Samples in the rings keep their weight
  // (EventAccounting::represented). On an error the event keeps its rate.
  // A change by Drain opens the events anew on the threads of the target. It ends the sampling of others that have
  // inherited them: with Target::Process children, with Target::Thread all that it has started. So do SetStackBytes
  // and SamplerOptions::cpu_budget.
  // Errors: InvalidArgument if there is no such event, if the rate is of the other kind (Period, Frequency) than the
  // event was opened with, or if Open would not take it (SampledEvent::rate); those of Open if a stopped sampler has to
  // reopen inherited events; as Start.
  absl::Status SetRate(size_t event, SampleRate rate);

  // Changes how many bytes of the stack CallStack::UserDump copies. The next Drain while the sampler runs carries it
  // out: it reopens all events, and undoes earlier reductions by the CPU budget (SamplerStats::decisions). The present
  // size has no effect but to cancel a change that is still to come. If events can't be opened, sampling continues
  // unchanged, SamplerStats::decisions_refused counts the failure, and the next Drain tries again. Errors:
  // InvalidArgument if UserDump would not take `bytes`; FailedPrecondition without dumps, with RingMode::kOverwrite, or
  // in a forked child.
  absl::Status SetStackBytes(uint32_t bytes);

  // Returns a descriptor for poll or epoll that is readable once a ring has reached its watermark. The sampler owns it.
  // Call Drain once before the first wait: records that are in the rings already do not make the descriptor readable.
  int poll_fd() const;

  // Calls visit for the records of all rings in order of time (those of a snapshot: newest first), and frees their
  // room. Returns the number of records. While the sampler runs and has several rings, the records of the last 50 us
  // stay there, because an older record may still be written into another ring. A record is valid until visit returns.
  // The visitor must not call the sampler, except layout(). If it throws (not with PERFKIT_NO_EXCEPTIONS), its record
  // counts as delivered, and the next Drain delivers the others, except what is left in the overwriting ring that was
  // being read: that is dropped (SamplerStats::overwritten_bytes).
  //
  // `max_records` bounds the records that one call reads. Upkeep (new threads, cpu_budget, new rates, a new size of
  // stacks) is done by calls that read fewer records than that; between Pause and Resume, only new threads are
  // attached. With RingMode::kOverwrite it bounds synthesized records only: the side band and snapshots are delivered
  // as a whole.
  size_t Drain(absl::FunctionRef<void(const SamplerRecord&)> visit, size_t max_records = SIZE_MAX);

  // RingMode::kOverwrite: for each ring a second one takes over. The next Drain delivers what the first ones hold,
  // newest first, after the side band's records up to now. No record is missed. Call Drain between two snapshots:
  // otherwise the first one's records come only with a later one, or after Stop, unless they are overwritten by then.
  // If other threads are sampled, both rings are written for some microseconds: what happens between from_ns and to_ns
  // (by SamplerOptions::clock_id) is in both.
  // Errors: FailedPrecondition if the sampler is stopped, streams, or is in a forked child; Internal if an ioctl fails.
  struct Takeover {
    uint64_t from_ns = 0, to_ns = 0;
  };
  absl::StatusOr<Takeover> Snapshot();

  // Returns true once no event can occur any more: all threads of the target that are sampled have ended, and all
  // threads and processes that inherited their events. Drain finds it out, with or without a side band: mostly the
  // second one after that, at the latest the first one that comes a tenth of a second later. Then stop and drain: the
  // rings may still hold records. poll_fd() becomes readable at the end if Drain was called before, but wait with a
  // timeout: where descriptors are short, it does not. Always false for whole CPUs.
  bool target_ended() const;

  // Returns the layout of all records of all events. Valid as long as the sampler.
  const SampleLayout& layout() const;
  // Returns the size of one ring, which is smaller than requested if memory was short (ring_status). With
  // SamplerOptions::Rings::kPerThread, the rings of threads that started after Open may be smaller still.
  size_t ring_bytes() const;
  // Returns the number of rings, without those of the side band.
  size_t rings() const;
  // Returns OK, or ResourceExhausted if the rings are smaller than requested, or if SamplerOptions::Rings::kAuto is
  // kPerThread because descriptors ran out: with the limit, and how to raise it.
  const absl::Status& ring_status() const;
  // Returns true if the event was restricted to user space because this user may not observe the kernel.
  bool user_only(size_t event) const;

  // Returns the accounting. Reads the kernel's counts, in some system calls for each thread and CPU.
  SamplerStats stats() const;
  // Returns the kernel's count of each event for each thread or CPU that it was opened on, ordered by event, thread and
  // CPU. Of a stopped sampler, those of an event sum to EventAccounting::counted. Reads as many counts as stats().
  std::vector<SamplerCount> counts() const;

 private:
  explicit Sampler(std::unique_ptr<sample::SamplerImpl> impl);
  std::unique_ptr<sample::SamplerImpl> impl_;
};

}  // namespace perfkit
