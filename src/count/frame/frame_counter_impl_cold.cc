// The cold half of FrameCounterImpl: set-up, attaching and ending of threads, recordings, disabling, the sums for
// reports. The list of threads has a lock, and another thread's tree is read only while that thread is outside of all
// zones (FrameThread::TryVisit). A thread that is inside of one when counting is disabled closes its events itself,
// when it leaves its outermost zone. In a forked child other threads' locks may be held forever, so nothing locks
// there.
#include <algorithm>

#include "src/count/frame/frame_counter_impl.h"
#include "src/count/tick_rate.h"
#include "src/sys/perf_abi.h"

namespace perfkit::count {
namespace {

// Memory for the zones of a thread at its start, beyond the least. There are many workers, and some enter few zones.
// The marking thread usually never needs more.
constexpr size_t kWorkerBytes = 2048;
constexpr size_t kMainBytes = 65536;

}  // namespace

FrameCounterImpl::FrameCounterImpl(const FrameOptions& options, std::atomic<bool>& enabled,
                                   std::atomic<uint32_t>& draining)
    : enabled_(enabled),
      draining_(draining),
      plan_(options.events, options.only_path),
      ns_per_tick_q32_(TickRateOf(UserPage{}).ns_per_tick_q32),
      main_serial_(ThreadSerial()),
      frames_(options.history_frames),
      hitches_(options.hitch_budget.count() > 0 ? static_cast<uint64_t>(options.hitch_budget.count()) : 0,
               ns_per_tick_q32_),
      names_(options.history_frames),
      fork_listener_([](void* self) { static_cast<FrameCounterImpl*>(self)->OnForkedChild(); }, this) {}

void FrameCounterImpl::Start(const FrameOptions& options) {
  std::optional<CounterSet> set = plan_.OpenFirst();
  hitches_.Substitute({.task_clock = plan_.IndexOf(sys::kSwTaskClock),
                       .page_faults = plan_.IndexOf(sys::kSwPageFaults),
                       .context_switches = plan_.IndexOf(sys::kSwContextSwitches),
                       .migrations = plan_.IndexOf(sys::kSwCpuMigrations)});
  shape_ = {.events = plan_.size(),
            .multiplexable = plan_.multiplexable(),
            .never = plan_.never(),
            .max_zones = options.max_zones,
            .max_depth = options.max_depth,
            .max_pending = 1,
            .spare_bytes = kWorkerBytes};
  slots_ = std::make_shared<SlotTable>(SlotWriter::WordsFor(shape_.events, shape_.multiplexable), options.max_threads);
  ZoneShape main_shape = shape_;
  main_shape.max_pending = ZoneTree::kMaxPending;
  main_shape.spare_bytes = kMainBytes;
  main_ = std::make_unique<FrameThread>(main_shape, "", next_serial_++);
  main_->is_worker = false;
  main_->Open(std::move(set));
  own_cost_ = MeasureOwnCost(*main_, ns_per_tick_q32_);
  hitches_.OpenLog();
  Bind(shared_from_this(), main_.get(), [](Bindable& impl, void* thread) {
    static_cast<FrameCounterImpl&>(impl).EndThread(*static_cast<FrameThread*>(thread));
  });
}

FrameThread* FrameCounterImpl::Attach(std::string_view name) noexcept {
  const std::shared_ptr<FrameCounterImpl> self = weak_from_this().lock();
  if (self == nullptr || in_forked_child_) return nullptr;
  const sys::ForkBlocker fork_blocker;
  SlotWriter slot;
  if (!slot.Claim(slots_, shape_.events, shape_.multiplexable)) {
    Refuse(self);
    return nullptr;
  }
  std::unique_lock<std::mutex> lock(mutex_);
  const uint64_t serial = next_serial_++;
  if (serial > FrameThread::kMaxSerial) {  // Entry ids of two threads would be the same.
    lock.unlock();
    slot.Release();
    Refuse(self);
    return nullptr;
  }
  auto thread = std::make_unique<FrameThread>(shape_, std::string(name.empty() ? "workers" : name), serial);
  FrameThread* const attached = thread.get();
  const bool bound = Bind(self, attached, [](Bindable& impl, void* ended) {
    static_cast<FrameCounterImpl&>(impl).EndThread(*static_cast<FrameThread*>(ended));
  });
  if (!bound) {
    slot.Release();
    return nullptr;
  }
  thread->slot = std::move(slot);
  if (recording_ != nullptr) {
    recording_->Add(*attached);
    const FrameThread::Work work(*attached);
    attached->FollowLog(0);  // So that the log begins, even if the thread never enters a zone.
  }
  workers_.push_back(std::move(thread));
  return attached;
}

// Binds nullptr to the thread, so that its next zone finds the refusal by one comparison.
void FrameCounterImpl::Refuse(const std::shared_ptr<FrameCounterImpl>& self) {
  if (FindBinding(this) == nullptr && WasRefused(this)) return;
  mistakes_.AddRefused();
  Bind(self, nullptr, nullptr);
}

bool FrameCounterImpl::AttachNamed(std::string_view name) {
  if (FindBinding(this) != nullptr) return false;
  FrameThread* const thread = Attach(name);
  if (thread == nullptr) return false;
  if (!enabled_.load(std::memory_order_relaxed)) return true;
  const FrameThread::Work work(*thread);
  PrepareWorker(*thread);
  if (!thread->ready) return true;
  LeaveOutermost(*thread);
  return true;
}

// Called on the thread, as it ends or is detached.
void FrameCounterImpl::EndThread(FrameThread& thread) {
  if (in_forked_child_) return;
  const sys::ForkBlocker fork_blocker;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (closed()) return;
  if (&thread == main_.get()) {
    thread.AbandonCrossThread();
    thread.tree.CountNeverLeft();
    thread.EndLog(0);
    main_serial_.store(0, std::memory_order_relaxed);
    return CloseMain();  // No more marks; results can still be read.
  }
  names_.Disown(thread);
  Retire(thread);
  std::erase_if(workers_, [&](const std::unique_ptr<FrameThread>& worker) { return worker.get() == &thread; });
}

// Adds what an ending thread has counted to the ended threads. Zones that are still open count up to now.
void FrameCounterImpl::Retire(FrameThread& thread) {
  const std::lock_guard<std::mutex> lock(thread.mutex);
  Drained(thread);
  uint64_t end_ticks = 0;  // 0 means now
  if (thread.open()) {
    thread.AbandonCrossThread();
    thread.tree.CountNeverLeft();
    thread.Read(thread.tree.scratch());
    end_ticks = thread.tree.scratch().ticks;
    thread.Publish();
    if (thread.dirty || thread.own_frames) thread.tree.EndFrameAtScratch(thread.frame, ns_per_tick_q32_);
    thread.Close();
  }
  thread.EndLog(end_ticks);
  thread.slot.Release();
  ended_.Add(thread.name, thread.tree);
}

void FrameCounterImpl::CloseMain() {
  main_->ready = false;
  main_->Close();
}

void FrameCounterImpl::SwitchOff() {
  const sys::ForkBlocker fork_blocker;
  // Raised before enabled_ changes, until all workers inside zones are counted, so that no Leave in between is skipped.
  draining_.fetch_add(1, std::memory_order_relaxed);
  enabled_.store(false, std::memory_order_seq_cst);  // pairs with the loads in StepOutside, PrepareWorker, Enter, Leave
  if (main_ != nullptr) {
    Settle();
    // Logs the zones that are open, and then that they were left.
    main_->FollowLog(0);
    main_->tree.DropFrame();
    main_->FollowLog(0);
    CloseMain();
  }
  hitches_.Close();
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const std::unique_ptr<FrameThread>& worker : workers_) {
    const std::lock_guard<std::mutex> thread_lock(worker->mutex);
    const bool outside = worker->TryVisit([&] {
      if (worker->open()) worker->CloseOutside(ns_per_tick_q32_);
    });
    Drained(*worker);  // It still counts as draining if counting was disabled and enabled again during its zone.
    if (outside) continue;
    worker->draining = true;
    draining_.fetch_add(1, std::memory_order_relaxed);
  }
  draining_.fetch_sub(1, std::memory_order_relaxed);
}

// Requires that the worker's mutex is held.
void FrameCounterImpl::Drained(FrameThread& thread) {
  if (std::exchange(thread.draining, false)) draining_.fetch_sub(1, std::memory_order_relaxed);
}

void FrameCounterImpl::Close() {
  if (!in_forked_child_) SwitchOff();
  Unbind(this, false);
  const std::unique_lock<std::mutex> lock =
      in_forked_child_ ? std::unique_lock<std::mutex>() : std::unique_lock(mutex_);
  MarkClosed();
  if (!in_forked_child_) EndLogs();
  workers_.clear();
  ended_.Clear();
  main_.reset();
  hitches_.Close();
  hitches_.DropCallback();
}

// Logs the end of all threads. Requires that none is inside a zone or a mark.
void FrameCounterImpl::EndLogs() {
  if (main_ != nullptr) main_->EndLog(0);
  for (const std::unique_ptr<FrameThread>& worker : workers_) worker->EndLog(0);
}

absl::StatusOr<std::unique_ptr<FrameRecording>> FrameCounterImpl::Record() {
  const std::shared_ptr<FrameCounterImpl> self = weak_from_this().lock();
  const auto refused = [](const char* why) { return absl::Status(absl::StatusCode::kFailedPrecondition, why); };
  constexpr const char* kGone = "the FrameCounter is gone, or the parent process's";
  if (self == nullptr || in_forked_child_) return refused(kGone);
  if (ns_per_tick_q32_ == 0) return refused("zones have no times: this machine has no tick counter");
  auto recording = std::make_unique<FrameRecording>(self, ns_per_tick_q32_);
  const sys::ForkBlocker fork_blocker;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (closed()) return refused(kGone);
  if (recording_ != nullptr) recording_->Detach();
  recording_ = recording.get();
  if (main_ != nullptr) recording->Add(*main_);
  for (const std::unique_ptr<FrameThread>& worker : workers_) recording->Add(*worker);
  FollowNow();
  return recording;
}

// Logs which zones are open now: those of the calling thread, and none for each worker that is outside of all zones. A
// worker inside a zone logs its own at its next zone.
void FrameCounterImpl::FollowNow() {
  auto* const mine = static_cast<FrameThread*>(FindBinding(this));
  if (mine != nullptr && !mine->at_work()) {
    const FrameThread::Work work(*mine);
    mine->FollowLog(0);
  }
  for (const std::unique_ptr<FrameThread>& worker : workers_) {
    if (worker.get() == mine) continue;
    const std::lock_guard<std::mutex> thread_lock(worker->mutex);
    worker->TryVisit([&] { worker->FollowLog(0); });
  }
}

void FrameCounterImpl::EndRecording(const FrameRecording& recording) {
  if (in_forked_child_) return;
  const sys::ForkBlocker fork_blocker;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (recording_ != &recording) return;  // a later one listens
  recording_ = nullptr;
  if (main_ != nullptr) main_->StopLog();
  for (const std::unique_ptr<FrameThread>& worker : workers_) worker->StopLog();
}

// Called in a forked child. The threads' CounterSets listen to forks themselves, and release their events.
void FrameCounterImpl::OnForkedChild() {
  in_forked_child_ = true;
  if (closed()) return;  // A thread remembers it, but the FrameCounter is gone, and enabled_ with it.
  enabled_.store(false, std::memory_order_relaxed);
  frames_.Clear();
  hitches_.OnForkedChild();
}

ZoneId FrameCounterImpl::DefineZone(std::string_view name) {
  if (in_forked_child_) return {};
  const sys::ForkBlocker fork_blocker;
  const std::lock_guard<std::mutex> lock(mutex_);
  return names_.DefineZone(name);
}

FrameId FrameCounterImpl::DefineFrame(std::string_view name, uint64_t budget_ns) {
  if (in_forked_child_) return {DefinedNames::kMaxSequences};
  const sys::ForkBlocker fork_blocker;
  const std::lock_guard<std::mutex> lock(mutex_);
  return names_.DefineFrame(name, shape_, budget_ns);
}

FrameId FrameCounterImpl::FrameNamed(std::string_view name) {
  if (const FrameId known = names_.FindFrame(name); known.index != 0) return known;
  if (in_forked_child_) return {DefinedNames::kMaxSequences};
  const sys::ForkBlocker fork_blocker;
  const std::lock_guard<std::mutex> lock(mutex_);
  const FrameId known = names_.FindFrame(name);
  return known.index != 0 ? known : names_.DefineFrame(name, shape_, 0);
}

const FrameSequence* FrameCounterImpl::sequence(FrameId id) const {
  return in_forked_child_ ? nullptr : names_.sequence(id);
}

// Workers' zones of the main frame under way are left out, as those of the marking thread are: a report must not cut a
// frame in two. Before the first frame has ended, and while the marking thread marks none, all zones are included.
std::vector<FrameCounterImpl::Group> FrameCounterImpl::Groups() {
  Settle();
  const uint64_t under_way = main_ != nullptr && main_->ready ? frames_.under_way() : 0;
  std::vector<Group> all;
  Group& marking = all.emplace_back(Group{"", 1, ZoneMerge(shape_.events)});
  if (main_ != nullptr) marking.zones.Add(main_->tree);
  if (in_forked_child_) return all;
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Group> workers = ended_.groups();
  for (const std::unique_ptr<FrameThread>& worker : workers_) {
    const std::lock_guard<std::mutex> thread_lock(worker->mutex);
    if (!worker->own_frames && (under_way == 0 || worker->frame != under_way)) {
      worker->TryVisit([&] { worker->Roll(ns_per_tick_q32_); });
    }
    Group& group = GroupNamed(workers, worker->name, shape_.events);
    ++group.live;
    group.zones.Add(worker->tree);
  }
  all.insert(all.end(), std::make_move_iterator(workers.begin()), std::make_move_iterator(workers.end()));
  return all;
}

FrameStats FrameCounterImpl::Stats() {
  FrameStats stats;
  for (const Group& group : Groups()) {
    stats.unplaced += group.zones.unplaced();
    for (size_t node = 0; node < group.zones.nodes().size(); ++node) {
      const ZoneMerge::Node& zone = group.zones.nodes()[node];
      if (node != 0) stats.zones += zone.total.calls;
    }
  }
  stats.frames = frames_.ended();
  mistakes_.Fill(stats);
  stats.hitches = watch().count();
  if (main_ == nullptr) return stats;
  stats.dropped = main_->tree.dropped() + mistakes_.interrupted();
  stats.mismatched = main_->tree.mismatched();
  const double wall_ns =
      static_cast<double>(main_->tree.total(ZoneTree::kRoot).ticks) * static_cast<double>(ns_per_tick_q32_) * 0x1p-32;
  const double cost_ns =
      static_cast<double>(stats.zones) * own_cost_.zone_ns() + static_cast<double>(stats.frames) * own_cost_.mark_ns;
  stats.overhead_fraction = wall_ns > 0 ? cost_ns / wall_ns : 0;
  if (in_forked_child_) return stats;
  const std::lock_guard<std::mutex> lock(mutex_);
  stats.threads = 1 + static_cast<uint32_t>(workers_.size());
  stats.dropped += ended_.dropped();
  stats.mismatched += ended_.mismatched();
  for (const std::unique_ptr<FrameThread>& worker : workers_) {
    const std::lock_guard<std::mutex> thread_lock(worker->mutex);
    stats.dropped += worker->tree.dropped();
    stats.mismatched += worker->tree.mismatched();
  }
  return stats;
}

}  // namespace perfkit::count
