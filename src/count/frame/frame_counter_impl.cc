// The hot half of FrameCounterImpl: zones and marks. The fast path of a zone is two reads of the counters and some
// additions. It is taken if the thread is ready and not watched (ThreadWatch), has used no other FrameCounter since,
// and enters the zone that it entered last below the innermost one, in this frame. All other work is out of line
// (EnterAny, LeaveAny), so that the fast path saves few registers. The marking thread is prepared, which opens its
// events, by its first zone or mark since they were closed. A worker is prepared by each outermost zone; the end of
// that zone publishes its numbers, and lets other threads visit its tree. A watched thread first handles what other
// threads have noted for it. A zone in a signal handler that interrupted work on the same thread's tree is dropped and
// counted.
//
// An `entry` is the id of one visit of a zone: the serial of its thread and a count; 0 for a zone that was dropped.
#include "src/count/frame/frame_counter_impl.h"

namespace perfkit::count {

void FrameCounterImpl::Mark() noexcept {
  if (ThreadSerial() != main_serial_.load(std::memory_order_relaxed)) [[unlikely]] {
    mistakes_.AddForeignMark();
    return;
  }
  const uint64_t ticks = EndMainFrame();
  if (!hitches_.has_budget()) return;
  if (hitches_.IsLate(ticks)) [[unlikely]]
    return ExplainHitch();
  hitches_.BeginFrame();
}

// Returns the ticks of the frame that ended; 0 if the mark only begins the first frame of a segment
// (the frames from one opening of the events to their closing).
inline uint64_t FrameCounterImpl::EndMainFrame() noexcept {
  FrameThread& thread = *main_;
  const FrameThread::Work work(thread);
  if (thread.is_watched()) [[unlikely]]
    return EndWatchedFrame(thread);
  if (!thread.ready) [[unlikely]] {
    PrepareMain();
    return 0;
  }
  const uint64_t ticks = EndReadyFrame(thread);
  if (thread.tree.pending() == ZoneTree::kMaxPending) [[unlikely]]
    SettleAtWork();
  return ticks;
}

inline uint64_t FrameCounterImpl::EndReadyFrame(FrameThread& thread) noexcept {
  thread.Read(thread.tree.next_mark());
  const uint64_t ticks = thread.tree.EndFrame(frames_.ended(), ns_per_tick_q32_);
  frames_.End();
  return ticks;
}

uint64_t FrameCounterImpl::EndWatchedFrame(FrameThread& thread) noexcept {
  CatchUp(thread);
  if (!thread.ready) {
    PrepareMain();
    return 0;
  }
  const uint64_t begin_ticks = thread.tree.frame_begin_ticks();
  const uint64_t ticks = EndReadyFrame(thread);
  if (thread.tree.pending() == ZoneTree::kMaxPending || thread.log() != nullptr) SettleAtWork();
  if (ZoneLog* const log = thread.log(); log != nullptr) {
    const uint32_t multiplexed = thread.tree.MultiplexedInLastFrame();
    log->AddFrame({.begin_ticks = begin_ticks, .end_ticks = begin_ticks + ticks, .multiplexed = multiplexed},
                  frames_.history().last(), plan_.size());
  }
  return ticks;
}

// To be called before a watched thread changes its tree: removes the zones that ended on other threads, and logs which
// zones are open.
void FrameCounterImpl::CatchUp(FrameThread& thread) noexcept {
  thread.FollowLog(0);
  thread.AbandonCrossThread();
  thread.FollowLog(0);
}

// Returns true, and counts a dropped zone, in a signal handler that interrupted work on this thread's tree.
bool FrameCounterImpl::DropIfInterrupting(const FrameThread& thread) noexcept {
  if (!thread.at_work()) [[likely]]
    return false;
  mistakes_.AddInterrupted();
  return true;
}

// A new zone of a handler would take its memory from where the frames' distributions take theirs.
void FrameCounterImpl::Settle() noexcept {
  if (in_forked_child_ || main_ == nullptr) return;
  const FrameThread::Work work(*main_);
  SettleAtWork();
}

void FrameCounterImpl::SettleAtWork() noexcept { frames_.Settle(main_->tree, ns_per_tick_q32_); }

// The callback may enter zones, so no FrameThread::Work exists while it runs. What it does counts in the next frame.
void FrameCounterImpl::ExplainHitch() noexcept {
  Settle();
  const Hitch& hitch = hitches_.Explain(frames_.history().last(), main_->tree);
  hitches_.BeginFrame();
  LogHitch(hitch);
  hitches_.Tell(hitch);
}

void FrameCounterImpl::LogHitch(const Hitch& hitch) noexcept {
  const FrameThread::Work work(*main_);
  if (ZoneLog* const log = main_->log(); log != nullptr) log->AddHitch(hitch.frame, hitch.cause);
}

// Stores in `zone` what Leave needs of the innermost visit.
inline void FrameCounterImpl::Fill(Zone& zone, FrameThread& thread) noexcept {
  zone.impl_ = this;
  zone.thread_ = &thread;
  zone.entry_ = thread.tree.top_entry();
}

[[gnu::flatten]] void FrameCounterImpl::Enter(ZoneId id, Zone* zone) noexcept {
  auto* const thread = static_cast<FrameThread*>(FindLastBinding(this));
  if (thread == nullptr || thread->at_work() || !thread->ready || thread->is_watched()) [[unlikely]]
    return EnterAny(id, zone);
  {
    const FrameThread::Work work(*thread);
    if (ZoneNode* const same = thread->tree.SameChild(id); same != nullptr) [[likely]] {
      Snapshot& begin = thread->tree.Push(*same);
      if (zone != nullptr) Fill(*zone, *thread);
      return thread->Read(begin);
    }
  }
  EnterAny(id, zone);
}

void FrameCounterImpl::EnterAny(ZoneId id, Zone* zone) noexcept {
  FrameThread* const thread = This();
  if (thread == nullptr || DropIfInterrupting(*thread)) return;
  const FrameThread::Work work(*thread);
  if (!thread->ready) {
    if (!Prepare(*thread)) return;
    thread->dirty = true;
  }
  if (thread->is_watched()) return EnterWatched(*thread, id, zone);
  EnterReady(*thread, id, zone);
}

void FrameCounterImpl::EnterReady(FrameThread& thread, ZoneId id, Zone* zone) noexcept {
  Snapshot* const begin = thread.tree.Enter(id);
  if (zone != nullptr) Fill(*zone, thread);
  if (begin != nullptr) thread.Read(*begin);
}

void FrameCounterImpl::EnterWatched(FrameThread& thread, ZoneId id, Zone* zone) noexcept {
  CatchUp(thread);
  EnterReady(thread, id, zone);
  thread.FollowLog(0);
}

void FrameCounterImpl::EnterPlain(ZoneId id) noexcept {
  if (enabled_.load(std::memory_order_relaxed)) [[likely]]
    return Enter(id, nullptr);
  auto* const thread = static_cast<FrameThread*>(FindBinding(this));
  if (thread == nullptr || !thread->is_worker || !thread->ready || DropIfInterrupting(*thread)) return;
  const FrameThread::Work work(*thread);
  thread->tree.EnterUncounted();  // or its Leave would leave a zone around it
}

[[gnu::flatten]] void FrameCounterImpl::Leave(const Zone& zone) noexcept {
  FrameThread* const thread = zone.thread_;
  if (FindLastBinding(this) != thread || thread->is_watched()) [[unlikely]]
    return LeaveAny(zone);
  {
    const FrameThread::Work work(*thread);
    if (thread->tree.IsTop(zone.entry_)) [[likely]] {
      thread->Read(thread->tree.scratch());
      thread->tree.Leave();
      if (thread->is_worker && thread->tree.depth() == 0) LeaveOutermost(*thread);
      return;
    }
  }
  LeaveAny(zone);
}

void FrameCounterImpl::LeaveAny(const Zone& zone) noexcept {
  auto* const thread = static_cast<FrameThread*>(FindBinding(this));
  if (thread != zone.thread_) return LeaveElsewhere(zone.entry_);
  const FrameThread::Work work(*thread);
  if (zone.entry_ == 0 && !thread->tree.has_dropped()) return;  // Forgotten when counting was disabled inside it.
  if (thread->tree.top_entry() != zone.entry_) return LeaveOutOfOrder(*thread, zone.entry_);
  LeaveTop(*thread);
}

// As above, and fills `counts` if the zone is the innermost one of this thread, and counting is enabled.
void FrameCounterImpl::Leave(const Zone& zone, FrameRecord& counts) noexcept {
  FrameThread* const thread = zone.thread_;
  const bool is_top = FindBinding(this) == thread && thread->tree.IsTop(zone.entry_);
  if (!is_top || !enabled_.load(std::memory_order_relaxed)) return Leave(zone);
  const FrameThread::Work work(*thread);
  const Snapshot begin = thread->tree.top_begin();
  LeaveTop(*thread);
  thread->tree.CountSince(begin, ns_per_tick_q32_, counts);
}

void FrameCounterImpl::LeaveTop(FrameThread& thread) noexcept {
  if (thread.is_watched()) return LeaveWatched(thread);
  LeaveReady(thread);
  if (thread.is_worker && thread.tree.depth() == 0) LeaveOutermost(thread);
}

// Returns false if there was no zone to leave, or one that is not counted.
bool FrameCounterImpl::LeaveReady(FrameThread& thread) noexcept {
  if (thread.tree.SkipLeave()) return false;
  thread.Read(thread.tree.scratch());
  thread.tree.Leave();
  return true;
}

void FrameCounterImpl::LeaveWatched(FrameThread& thread) noexcept {
  thread.FollowLog(0);
  const bool left = LeaveReady(thread);
  thread.FollowLog(left ? thread.tree.scratch().ticks : 0);
  CatchUp(thread);
  if (thread.is_worker && thread.tree.depth() == 0) LeaveOutermost(thread);
}

void FrameCounterImpl::LeaveInnermost() noexcept {
  const bool counting = enabled_.load(std::memory_order_relaxed);
  auto* thread = static_cast<FrameThread*>(FindBinding(this));
  if (thread == nullptr && counting && !WasRefused(this)) thread = This();  // A refused thread has entered no zone.
  if (thread == nullptr || thread->at_work()) return;  // in a signal handler: its Enter was dropped
  const FrameThread::Work work(*thread);
  if (!counting && !thread->ready) return;
  // A worker outside of all zones must step inside before it may count the mistake in its tree.
  if (!thread->ready) {
    if (!Prepare(*thread)) return;
    thread->dirty = true;
  }
  if (thread->is_watched()) CatchUp(*thread);
  LeaveTop(*thread);
}

// The zone is not the innermost one: zones entered after it were left on another thread, or never. Or it is no longer
// on the stack: counting was disabled in between. Or it is of an ended thread whose FrameThread had the same address.
void FrameCounterImpl::LeaveOutOfOrder(FrameThread& thread, uint64_t entry) noexcept {
  if (entry != 0 && FrameThread::SerialOf(entry) != thread.serial) return LeaveElsewhere(entry);
  if (!thread.ready) return;
  if (thread.is_watched()) CatchUp(thread);
  thread.Read(thread.tree.scratch());
  if (thread.tree.UnwindTo(entry)) LeaveTop(thread);
}

// Notes the zone for the thread that entered it, which removes it from its stack at its next zone or mark. If that
// thread has ended or is detached, the zone has its counts up to then, and is already counted as mismatched.
void FrameCounterImpl::LeaveElsewhere(uint64_t entry) noexcept {
  if (in_forked_child_ || entry == 0) return mistakes_.AddCrossThread();
  const uint64_t serial = FrameThread::SerialOf(entry);
  const sys::ForkBlocker fork_blocker;
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool main_lives = main_serial_.load(std::memory_order_relaxed) != 0;
  FrameThread* entered_on = main_lives && main_ != nullptr && main_->serial == serial ? main_.get() : nullptr;
  for (const std::unique_ptr<FrameThread>& worker : workers_) {
    if (worker->serial == serial) entered_on = worker.get();
  }
  if (entered_on == nullptr) return;
  mistakes_.AddCrossThread();
  entered_on->NoteCrossThread(entry);
}

// Called on the marking thread at the first zone or mark since its events were closed, on a worker before each
// outermost zone.
bool FrameCounterImpl::Prepare(FrameThread& thread) noexcept {
  if (thread.is_worker) {
    PrepareWorker(thread);
  } else {
    PrepareMain();
  }
  return thread.ready;
}

void FrameCounterImpl::PrepareMain() noexcept {
  FrameThread& thread = *main_;
  if (!thread.open()) {
    thread.Open(plan_.OpenNext());
    hitches_.OpenLog();
  }
  thread.Read(thread.tree.next_mark());
  thread.tree.BeginFrame();
  hitches_.BeginSegment();
  thread.ready = true;
}

void FrameCounterImpl::PrepareWorker(FrameThread& thread) noexcept {
  thread.StepInside();
  // If counting was disabled after the zone's check of enabled_, SwitchOff may have found this thread outside, and not
  // counted it as draining. Then FrameCounter::Leave, which tests both, would do nothing, and a zone begun by Enter
  // would stay open. The load is in one total order (seq_cst) with SwitchOff's store and TryVisit.
  if (!enabled_.load(std::memory_order_seq_cst)) [[unlikely]]
    return StepOutside(thread);
  const uint64_t frame = frames_.under_way();
  if (!thread.open() || thread.frame != frame) {
    const std::lock_guard<std::mutex> lock(thread.mutex);
    if (!thread.own_frames) thread.Roll(ns_per_tick_q32_);
    thread.frame = frame;
    if (!thread.open()) thread.Open(plan_.OpenNext());
  }
  thread.ready = true;
}

void FrameCounterImpl::LeaveOutermost(FrameThread& thread) noexcept {
  thread.Publish();
  thread.ready = false;
  StepOutside(thread);
}

// Closes the thread's events if counting was switched off while it was inside.
void FrameCounterImpl::StepOutside(FrameThread& thread) noexcept {
  thread.StepOutside();
  // Loaded after StepOutside, as frame_thread.h explains: either SwitchOff finds this thread outside, or its store is
  // seen here.
  if (enabled_.load(std::memory_order_seq_cst)) [[likely]]
    return;
  if (in_forked_child_) return;
  const std::lock_guard<std::mutex> lock(thread.mutex);
  Drained(thread);
  if (thread.open()) thread.CloseOutside(ns_per_tick_q32_);
}

// Reads only one word if no recording listens. A worker outside of all zones steps inside, as for a zone.
void FrameCounterImpl::AddText(ZoneRecordKind kind, FrameId id, std::string_view text) noexcept {
  FrameThread* const thread = This();
  if (thread == nullptr || !thread->is_watched() || DropIfInterrupting(*thread)) return;
  if (id.index != 0 && names_.sequence(id) == nullptr) return;
  const FrameThread::Work work(*thread);
  const bool outermost = thread->is_worker && !thread->ready;
  if (!thread->ready && !Prepare(*thread)) return;
  if (ZoneLog* const log = thread->log(); log != nullptr) log->AddText(kind, static_cast<uint16_t>(id.index), text);
  if (outermost) LeaveOutermost(*thread);
}

void FrameCounterImpl::Mark(FrameId id) noexcept {
  if (id.index == 0) return Mark();
  FrameSequence* const sequence = names_.sequence(id);
  if (sequence == nullptr) return;
  FrameThread* const thread = This();
  if (thread == nullptr) return;
  const FrameThread::Work work(*thread);
  const bool outermost = thread->is_worker && !thread->ready;
  if (!thread->ready && !Prepare(*thread)) return;
  if (thread->is_watched()) CatchUp(*thread);
  if (sequence->Claim(*thread)) {
    thread->dirty = true;
    MarkSequence(*sequence, id, *thread);
  } else {
    mistakes_.AddForeignMark();
  }
  if (outermost) LeaveOutermost(*thread);
}

void FrameCounterImpl::MarkSequence(FrameSequence& sequence, FrameId id, FrameThread& thread) noexcept {
  thread.Read(thread.tree.scratch());
  const uint64_t end_ticks = thread.tree.scratch().ticks;
  const std::lock_guard<std::mutex> lock(thread.mutex);
  const std::optional<FrameSequence::Ended> ended = sequence.Mark(thread, ns_per_tick_q32_);
  ZoneLog* const log = thread.log();
  if (log == nullptr || !ended) return;
  log->AddFrame({static_cast<uint16_t>(id.index), ended->begin_ticks, end_ticks, ended->multiplexed}, *ended->record,
                plan_.size());
}

}  // namespace perfkit::count

// The hot members of FrameCounter: here, so that the compiler can inline their implementation.
namespace perfkit {

void FrameCounter::MarkMain() noexcept { impl_->Mark(); }
void FrameCounter::MarkOther(FrameId id) noexcept { impl_->Mark(id); }
void FrameCounter::KeepFrame(FrameId id, std::string_view reason) noexcept {
  impl_->AddText(count::ZoneRecordKind::kReason, id, reason);
}
void FrameCounter::AttachToFrame(FrameId id, std::string_view state) noexcept {
  impl_->AddText(count::ZoneRecordKind::kState, id, state);
}
void FrameCounter::EnterZone(ZoneId id, Zone& zone) noexcept { impl_->Enter(id, &zone); }
void FrameCounter::LeaveZone(const Zone& zone) noexcept { zone.impl_->Leave(zone); }
void FrameCounter::EndZone(const Zone& zone, FrameRecord& counts) noexcept { zone.impl_->Leave(zone, counts); }
void FrameCounter::EnterPlain(ZoneId id) noexcept { impl_->EnterPlain(id); }
void FrameCounter::LeavePlain() noexcept { impl_->LeaveInnermost(); }

}  // namespace perfkit
