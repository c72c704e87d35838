// The signal handler of live stacks, from the signal to the record. Everything that runs in a signal is marked
// PERFKIT_IN_HANDLER: it does not allocate, lock or wait, and calls nothing of the standard library. A handler enters
// its thread's ring, checks whether the thread may walk again, walks, and writes one record. Each way out without a
// record counts its reason, so that the accounting of stacks balances.
#include "src/sample/live_stack_handler.h"

#include <errno.h>

#include <algorithm>
#include <utility>

#include "src/sample/live_record.h"
#include "src/sys/clock.h"
#include "src/sys/kernel.h"
#include "src/sys/rseq.h"
#include "src/unwind/machine.h"

namespace perfkit::sample {
namespace {

constexpr uint32_t kWatchedWalks = 16;
constexpr uint64_t kLongestRestNs = 1'000'000'000;

// Writes words to consecutive positions of a ring. Atomically, because StackRings::PopulateAhead may write what is
// there at the same time.
struct WordWriter {
  std::byte* data;
  uint64_t mask, at;

  PERFKIT_IN_HANDLER void Put(uint64_t word) {
    __atomic_store_n(reinterpret_cast<uint64_t*>(data + (at & mask)), word, __ATOMIC_RELAXED);
    at += sizeof(word);
  }
};

PERFKIT_IN_HANDLER void PutFrames(WordWriter& out, const UnwoundStack& stack, const StackFrame* frames) {
  for (size_t i = 0; i < stack.frames; ++i) out.Put(frames[i].pc);
  out.Put(LiveRecord::State(static_cast<uint8_t>(stack.end), stack.guesses, stack.omitted, stack.outer));
  for (size_t i = 0; i < stack.frames;) {
    uint64_t marks = 0;
    for (unsigned shift = 0; shift < 64 && i < stack.frames; shift += 2, ++i) {
      if (frames[i].is_return_address) marks |= LiveRecord::kReturnAddress << shift;
      if (frames[i].is_guess) marks |= LiveRecord::kGuess << shift;
    }
    out.Put(marks);
  }
}

}  // namespace

LiveStackHandler::LiveStackHandler(unwind::LiveWalker* walker, const Options& options, StackRings rings)
    : walker_(walker),
      clock_(options.clock),
      clock_offset_ns_(sys::ClockOffsetNs(options.clock)),
      events_(static_cast<uint32_t>(options.events)),
      pid_(static_cast<uint32_t>(sys::kernel().getpid())),
      rings_(std::move(rings)),
      skipped_owned_(std::make_unique<uint64_t[]>(options.events * kStackSkips)),
      skipped_(skipped_owned_.get()) {
  for (const Field field : detail::kTrailer) {
    if (options.layout.has(field)) trailer_[trailer_fields_++] = field;
  }
}

absl::StatusOr<LiveStackHandler::Owner> LiveStackHandler::Make(std::unique_ptr<unwind::LiveWalker> walker,
                                                               const Options& options) {
  std::optional<StackRings> rings = StackRings::Make(options.shape);
  if (!rings) return absl::ErrnoToStatus(errno, "no memory for rings of live stacks");
  Owner handler(new LiveStackHandler(walker.get(), options, *std::move(rings)));
  handler->owned_walker_ = std::move(walker);
  absl::StatusOr<sys::SampleClaim> claim = sys::SampleClaim::OfProcess(&LiveStackHandler::OnSample, handler.get());
  if (!claim.ok()) return claim.status();
  handler->claim_ = *std::move(claim);
  return handler;
}

void LiveStackHandler::Ending::operator()(LiveStackHandler* handler) const {
  if (!handler->claim_ || handler->claim_->End()) delete handler;
}

void LiveStackHandler::Pause(bool pause) { __atomic_store_n(&paused_, pause ? 1 : 0, __ATOMIC_RELAXED); }

uint64_t LiveStackHandler::skipped(size_t event, StackSkip why) const {
  return __atomic_load_n(&skipped_[event * kStackSkips + static_cast<size_t>(why)], __ATOMIC_RELAXED);
}

PERFKIT_IN_HANDLER void LiveStackHandler::Skip(uint32_t number, StackSkip why) {
  const uint32_t event = SignalNumber::EventOf(number);
  if (event >= events_) return;
  __atomic_add_fetch(skipped_ + event * kStackSkips + static_cast<size_t>(why), 1, __ATOMIC_RELAXED);
}

PERFKIT_IN_HANDLER void LiveStackHandler::Guard(pid_t tid, uint32_t number, bool stale, uint64_t now_ns,
                                                const ucontext_t& registers) {
  using unwind::ThisMachine;
  constexpr size_t kPc = ThisMachine::kContext[ThisMachine::kPc], kSp = ThisMachine::kContext[ThisMachine::kSp];
  const auto* const context = reinterpret_cast<const std::byte*>(&registers);
  const uint64_t pc = *reinterpret_cast<const uint64_t*>(context + kPc);
  const uint64_t sp = *reinterpret_cast<const uint64_t*>(context + kSp);
  if (!progress_.IsStuck(tid, pc, sp, stale, now_ns)) return;
  switches_.SwitchOff(number);
  uint64_t none = 0;
  __atomic_compare_exchange_n(&switched_off_ns_, &none, now_ns, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

PERFKIT_IN_HANDLER void LiveStackHandler::OnSample(void* self, uint32_t number, bool stale,
                                                   const ucontext_t& registers) {
  auto& handler = *static_cast<LiveStackHandler*>(self);
  // A system call each time, on purpose: if system calls are sampled, its signal is stale, and Guard can notice that
  // the thread does not advance. The signal of the handler's sigreturn is not stale.
  const pid_t tid = sys::HandlerTid();
  const uint64_t now = handler.Now();
  // From here on each return has counted the signal, or has left a record.
  handler.Guard(tid, number, stale, now, registers);
  if (stale) return handler.Skip(number, StackSkip::kStale);
  if (__atomic_load_n(&handler.paused_, __ATOMIC_RELAXED) != 0) return handler.Skip(number, StackSkip::kPaused);
  bool nested = false;
  StackRing* ring = handler.rings_.Enter(tid, now, nested);
  // No ring is free: takes over the ring of a thread that has ended, if the reader has not given it back yet.
  if (ring == nullptr) ring = handler.rings_.EnterEnded(tid, now);
  if (ring == nullptr) return handler.Skip(number, StackSkip::kNoRing);
  // This signal has interrupted a handler on the same thread: a walk would find the handler's stack, not the sample's.
  if (nested) return handler.Skip(number, StackSkip::kStale);
  handler.Take(*ring, number, registers);
  handler.rings_.Leave(*ring);
}

// kLongestRestNs ends a pause that became too long because the clock was set back.
PERFKIT_IN_HANDLER bool LiveStackHandler::Rests(const StackRing& ring, uint64_t cpu_ns) const {
  if (ring.watched != 0) return cpu_ns < ring.rest_until_cpu_ns;
  return ring.time_ns < ring.rest_until_ns && ring.rest_until_ns - ring.time_ns < kLongestRestNs;
}

PERFKIT_IN_HANDLER void LiveStackHandler::Take(StackRing& ring, uint32_t number, const ucontext_t& registers) {
  ring.time_ns = Now();
  const uint64_t cpu = ring.watched != 0 ? sys::HandlerNow(CLOCK_THREAD_CPUTIME_ID) : 0;
  if (Rests(ring, cpu)) return Skip(number, StackSkip::kWalkLimit);
  const size_t trailer_bytes = 8 * trailer_fields_;
  // If not even the shortest record fits, the stack is not walked. The size of its record is known after the walk only.
  if (!rings_.HasRoom(ring, LiveRecord::Bytes(1, trailer_bytes))) return Skip(number, StackSkip::kRingFull);
  UnwoundStack stack = walker_->WalkBothEnds(registers, ring.room, ring.outer, ring.tid);
  if (stack.frames > rings_.shape().depth) stack.frames = rings_.shape().depth;
  if (rings_.HasRoom(ring, LiveRecord::Bytes(stack.frames, trailer_bytes))) {
    Write(ring, number, stack);
  } else {
    Skip(number, StackSkip::kRingFull);
  }
  Account(ring, cpu);
}

PERFKIT_IN_HANDLER void LiveStackHandler::Account(StackRing& ring, uint64_t cpu_ns) {
  const uint64_t now = Now();
  uint64_t took = now - ring.time_ns;
  if (ring.watched != 0) {
    const uint64_t cpu_now = sys::HandlerNow(CLOCK_THREAD_CPUTIME_ID);
    // The walks of a watched thread are timed by CPU time. After kWatchedWalks short ones it is not watched any more.
    took = cpu_now - cpu_ns;
    ring.watched = took > kLongWalkNs ? kWatchedWalks : ring.watched - 1;
    ring.rest_until_cpu_ns = cpu_now + kRest * took;
  } else if (took > kLongWalkNs) {
    ring.watched = kWatchedWalks;  // The thread may have been off its CPU.
    ring.rest_until_cpu_ns = took = 0;
  }
  ring.rest_until_ns = now + kRest * took;
  __atomic_store_n(&ring.handler_ns, ring.handler_ns + took, __ATOMIC_RELAXED);
}

PERFKIT_IN_HANDLER void LiveStackHandler::Write(StackRing& ring, uint32_t number, const UnwoundStack& stack) {
  WordWriter out{ring.data, rings_.shape().ring_bytes - 1, ring.page.data_head};
  const uint64_t bytes = LiveRecord::Bytes(stack.frames, 8 * trailer_fields_);
  // perf_event_header as one word: type, misc, size.
  out.Put(bytes << 48 | uint64_t{LiveRecord::kMisc} << 32 | static_cast<uint32_t>(RecordType::kCallchainDeferred));
  out.Put(uint64_t{ring.tid} << 40 | (++ring.written & ((uint64_t{1} << 40) - 1)));  // The cookie is unique.
  out.Put(stack.frames + 1);
  out.Put(LiveRecord::kUserContext);
  PutFrames(out, stack, ring.frames);
  for (uint32_t i = 0; i < trailer_fields_; ++i) {
    switch (trailer_[i]) {
      case Field::kTid: out.Put(uint64_t{ring.tid} << 32 | pid_); break;
      case Field::kTime: out.Put(ring.time_ns); break;
      case Field::kCpu: out.Put(*sys::CurrentCpuWord()); break;
      default: out.Put(number); break;  // An id: LiveStackReader::Take replaces the number by it.
    }
  }
  StackRings::Publish(ring, out.at);
}

}  // namespace perfkit::sample
