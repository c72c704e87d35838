// One mutex guards the sampler and the profile. The session's thread holds it while it drains, a caller while it stops
// the session or takes a snapshot. Sampled threads never wait for it, because their samples go into rings.
//
// The session's thread only calls Poll in a loop, as a program does that has no such thread
// (SessionOptions::own_thread). It ends when sampling ends. The caller of Stop makes the profile.
#include "src/session/impl.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "src/base/text.h"
#include "src/count/frame/frame_counter_impl.h"
#include "src/count/task/task_counter_impl.h"
#include "src/session/cpu_time.h"
#include "src/session/sampler_accounting.h"
#include "src/sys/clock.h"
#include "src/sys/files.h"
#include "src/sys/kernel.h"

namespace perfkit::session {
namespace {

constexpr int kUsualWaitMs = 100;
constexpr int kZonesWaitMs = 20;  // A thread's log has room for 20 ms of 1.6 million zones a second.
constexpr int kMinLookMs = 4;     // Each round costs the session's thread about 20 us.
constexpr int kEarlyLookMs = 1;
constexpr uint64_t kNamingStepNs = 10'000'000;                       // StepNaming
constexpr size_t kFlightMemory = 8 << 20, kStreamMemory = 64 << 20;  // SessionOptions::memory_bytes, if it is 0
constexpr size_t kMaxSideBandBytes = 1 << 20;  // kOverwrite: later ones are added before their samples.

std::string ProgramName() {
  const absl::StatusOr<std::string> text = sys::ReadFile("/proc/self/comm");
  return text.ok() ? std::string(base::Trim(*text)) : "";
}

std::unique_ptr<StackUnwinder> MakeUnwinder(const SessionOptions& options, CallStack::Kind stacks) {
  const StackHooks* const hooks = &StackHookTable;
  const bool needed = stacks == CallStack::Kind::kUserDump || options.clock == SessionClock::kWall;
  return hooks != nullptr && needed ? hooks->unwinder(kStitchBytes) : nullptr;
}

std::unique_ptr<count::FrameRecording> Record(const SessionOptions& options, std::vector<std::string>& notes) {
  if (options.frames == nullptr) return nullptr;
  absl::StatusOr<std::unique_ptr<count::FrameRecording>> recording =
      count::FrameCounterImpl::Of(*options.frames)->Record();
  if (recording.ok()) return *std::move(recording);
  notes.push_back(absl::StrFormat("no zones and frames: %s", recording.status().message()));
  return nullptr;
}

std::unique_ptr<count::TaskRecording> RecordTasks(const SessionOptions& options, std::vector<std::string>& notes) {
  if (options.tasks == nullptr) return nullptr;
  absl::StatusOr<std::unique_ptr<count::TaskRecording>> recording =
      count::TaskCounterImpl::Of(*options.tasks)->Record();
  if (recording.ok()) return *std::move(recording);
  notes.push_back(absl::StrFormat("no tasks: %s", recording.status().message()));
  return nullptr;
}

std::unique_ptr<LockRecords> RecordLocks(const SessionOptions& options) {
  if (options.clock != SessionClock::kWall) return nullptr;
  return LockRecords::Start(static_cast<uint64_t>(std::max<int64_t>(options.lock_waits_from.count(), 0)));
}

// Returns nullptr, and adds a note, if preempters can't be known. Called after the session's own sampler was opened,
// which needs locked memory more.
std::unique_ptr<Preempters> OpenPreempters(const SessionOptions& options, std::vector<std::string>& notes) {
  if (!options.preempters) return nullptr;
  const auto pid = static_cast<uint32_t>(sys::kernel().getpid());
  absl::StatusOr<std::unique_ptr<Preempters>> preempters =
      Preempters::Open(pid, options.memory_bytes / 8, options.wakers);
  if (preempters.ok()) return *std::move(preempters);
  notes.push_back(absl::StrFormat("who preempted threads is not known: %s", preempters.status().message()));
  return nullptr;
}

AggregatorOptions AggregatorOptionsOf(const SessionOptions& options, OpenedSampler& opened,
                                      std::vector<ListedThread> threads) {
  const StackHooks* const hooks = &StackHookTable;
  return {.stacks = opened.stacks,
          .pid = static_cast<uint32_t>(sys::kernel().getpid()),
          .off_cpu = options.clock == SessionClock::kWall,
          // A sample takes up to 1.6 times as many bytes as its record in the rings, of which one set in two is read.
          .memory_bytes = options.mode == RingMode::kOverwrite ? 2 * options.memory_bytes : options.memory_bytes,
          .threads = std::move(threads),
          .thread_name = options.thread_name,
          .program = ProgramName(),
          .lines = hooks != nullptr && options.lines ? hooks->lines : nullptr,
          .complete = options.mode != RingMode::kOverwrite,
          .events = opened.sampled,
          .wakings = opened.wakings,
          .on_batch = options.on_batch,
          .keep = options.keep,
          .frames = Record(options, opened.notes),
          .tasks = RecordTasks(options, opened.notes),
          .unwinder = MakeUnwinder(options, opened.stacks),
          .locks = RecordLocks(options),
          .preempters = OpenPreempters(options, opened.notes)};
}

uint64_t Nanoseconds(std::chrono::nanoseconds time) {
  return static_cast<uint64_t>(std::max<int64_t>(time.count(), 0));
}

}  // namespace

Impl::Impl(SessionOptions options, OpenedSampler opened, AggregatorOptions aggregator)
    : options_(std::move(options)),
      owner_pid_(sys::kernel().getpid()),
      sampler_(std::move(opened.sampler)),
      poll_fd_(sampler_->poll_fd()),
      aggregator_(std::move(opened.events), std::move(aggregator)),
      backlog_(opened.stacks == CallStack::Kind::kUserDump, options_.memory_bytes / 4),
      notes_(std::move(opened.notes)),
      flight_(Nanoseconds(options_.keep_last)) {}

absl::StatusOr<std::shared_ptr<Impl>> Impl::Start(SessionOptions options) {
  const bool overwrites = options.mode == RingMode::kOverwrite;
  if (options.memory_bytes == 0) options.memory_bytes = overwrites ? kFlightMemory : kStreamMemory;
  absl::StatusOr<std::vector<ListedThread>> threads = FindThreads(options.threads);
  if (!threads.ok()) return threads.status();
  absl::StatusOr<OpenedSampler> opened = OpenSampler(options);
  if (!opened.ok()) return opened.status();
  AggregatorOptions aggregator = AggregatorOptionsOf(options, *opened, *std::move(threads));
  std::shared_ptr<Impl> impl(new Impl(std::move(options), *std::move(opened), std::move(aggregator)), [](Impl* mine) {
    if (!mine->in_forked_child()) delete mine;  // a forked child leaks the copy: it may not lock
  });
  absl::StatusOr<sys::Waiter> waiter = sys::Waiter::Open(impl->poll_fd_);
  if (!waiter.ok()) return waiter.status();
  impl->waiter_.emplace(*std::move(waiter));
  impl->at_.started_ns = sys::ClockNs(CLOCK_MONOTONIC);
  impl->aggregator_.SetStart(impl->at_.started_ns);
  impl->flight_.Start(impl->at_.started_ns);
  impl->reductions_.Start(impl->at_.started_ns);
  if (Preempters* const preempters = impl->aggregator_.preempters(); preempters != nullptr) {
    if (absl::Status status = preempters->Start(); !status.ok()) return status;
  }
  if (absl::Status status = impl->sampler_->Start(); !status.ok()) return status;
  if (!impl->options_.own_thread) return impl;
  if (!overwrites) impl->aggregator_.SetKeeper(&impl->keeper_);
  if (absl::Status status = impl->thread_.Start("perfkit-session", [raw = impl.get()] { raw->Work(); }); !status.ok()) {
    return status;
  }
  return impl;
}

Impl::~Impl() {
  Halt();
  if (waiter_) waiter_->Wake();
  thread_.Join();
}

bool Impl::in_forked_child() const { return sys::kernel().getpid() != owner_pid_; }

bool Impl::running() const {
  const Phase phase = phase_;
  return (phase == Phase::kRunning || phase == Phase::kStopping) && !in_forked_child();
}

absl::Status Impl::CheckUsable() const {
  if (phase_ != Phase::kTaken) return absl::OkStatus();
  return absl::Status(absl::StatusCode::kFailedPrecondition,
                      "the session was stopped, and its profile was taken. Remedy: Session::Start another one");
}

// In a forked child, a thread that does not exist there may hold the lock. So this closes the descriptors only, and
// leaves the session's memory as it is.
void Impl::OnForkedChild(void* impl) {
  auto* const self = static_cast<Impl*>(impl);
  if (self->waiter_) self->waiter_->Close();
}

// Returns the time until the next Poll, unless poll_fd() wakes the thread earlier.
int Impl::WaitMs() const {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (aggregator_.looks_early()) return kEarlyLookMs;
  }
  int64_t wait_ms = kUsualWaitMs;
  if (options_.clock == SessionClock::kWall) {
    const auto look_ms = std::chrono::duration_cast<std::chrono::milliseconds>(options_.look_after).count();
    wait_ms = std::clamp<int64_t>(look_ms, kMinLookMs, kUsualWaitMs);
  }
  if (options_.frames != nullptr || options_.tasks != nullptr) wait_ms = std::min<int64_t>(wait_ms, kZonesWaitMs);
  const uint64_t now_ns = sys::ClockNs(CLOCK_MONOTONIC);
  const auto wait_until = [&](uint64_t due_ns) {
    const uint64_t left_ns = due_ns - std::min(due_ns, now_ns);
    wait_ms = std::min<int64_t>(wait_ms, static_cast<int64_t>(left_ns / 1'000'000 + 1));
  };
  if (const uint64_t limit_ns = Nanoseconds(options_.stop_after); limit_ns != 0) wait_until(at_.started_ns + limit_ns);
  if (Nanoseconds(options_.stop_when_idle) != 0) wait_until(at_.idle_due_ns);
  return static_cast<int>(wait_ms);
}

// The body of the session's own thread, until sampling has ended. The first Poll builds the unwind tables that Start
// has left for later.
void Impl::Work() {
  while (Poll().ok() && phase_ == Phase::kRunning && !in_forked_child()) {
    StopIfIdle();
    waiter_->Wait(WaitMs());
  }
}

// Without the lock while it reads files.
void Impl::StopIfIdle() {
  const uint64_t limit_ns = Nanoseconds(options_.stop_when_idle);
  if (limit_ns == 0 || sys::ClockNs(CLOCK_MONOTONIC) < at_.idle_due_ns) return;
  absl::StatusOr<std::vector<ThreadRuns>> threads = LookAtRuns(keeper_.tid());
  const uint64_t now_ns = sys::ClockNs(CLOCK_MONOTONIC);
  const uint64_t idle_ns = threads.ok() ? idle_.Update(*std::move(threads), now_ns) : 0;
  at_.idle_due_ns = now_ns + limit_ns - std::min(idle_ns, limit_ns);
  if (idle_ns < limit_ns) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (phase_ != Phase::kRunning) return;
  notes_.push_back(absl::StrFormat("sampling ended by itself: no thread had run for %d ns", idle_ns));
  HaltLocked();
}

absl::Status Impl::Poll() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (absl::Status status = CheckUsable(); !status.ok()) return status;
  if (phase_ != Phase::kRunning) return absl::OkStatus();
  const uint64_t now_ns = sys::ClockNs(CLOCK_MONOTONIC);
  {
    const CpuTime cpu_time(own_cpu_ns_);
    aggregator_.ReadTimelines();  // Before Drain, which may merge samples: then it is too late to label them.
  }
  Drain();
  {
    const CpuTime cpu_time(own_cpu_ns_);
    aggregator_.ReadTimelines();
    // After the drain, because only switch records say which threads sleep. With the time from before the drain,
    // because a thread may have fallen asleep meanwhile.
    aggregator_.LookAtSleepers(now_ns, Nanoseconds(options_.look_after));
    aggregator_.GiveBatch([this](double) { StepNaming(); });
    aggregator_.DecideFrames(at_.drained_ns - kDrainedAfterNs, [this](double) { StepNaming(); });
  }
  reductions_.Note(aggregator_.Reduced(), at_.drained_ns);
  const uint64_t limit_ns = Nanoseconds(options_.stop_after);
  if (limit_ns != 0 && now_ns - at_.started_ns >= limit_ns) HaltLocked();
  return absl::OkStatus();
}

// Reads the rings. kOverwrite: reads the side band; after a snapshot or a stop also the samples.
void Impl::Drain() {
  ReadRecords();
  CheckStolenTimes();
}

void Impl::ReadRecords() {
  at_.drained_ns = sys::ClockNs(CLOCK_MONOTONIC);
  {
    const CpuTime cpu_time(own_cpu_ns_);
    aggregator_.ReadAccounts(at_.drained_ns);
  }
  const SampleLayout& layout = sampler_->layout();
  if (options_.mode != RingMode::kOverwrite) {
    const auto add = [&](const SamplerRecord& record, bool dropped) { aggregator_.Add(record, layout, dropped); };
    backlog_.Drain(
        layout, [this](UnwindBacklog::Visit visit) { ReadRings(visit); }, add, own_cpu_ns_);
    const CpuTime cpu_time(own_cpu_ns_);
    aggregator_.NamePreempters();
    return;
  }
  sampler_->Drain([&](const SamplerRecord& record) { kept_.Add(record, layout); });
  // While a flight recorder runs, its side-band records are kept, to be put in order with the samples of a snapshot.
  if (phase_ == Phase::kRunning && kept_.bytes() <= kMaxSideBandBytes) return;
  kept_.Replay([&](const SamplerRecord& record) { AddRecorded(record); });
}

void Impl::CheckStolenTimes() {
  StolenTimes& stolen = aggregator_.stolen_times();
  if (stolen.is_check_due()) stolen.Check(LossesOf(sampler_->stats()));  // stats() costs a system call for each event
}

// kStream: reads all records that are in rings.
void Impl::ReadRings(absl::FunctionRef<void(const SamplerRecord& record)> visit) {
  sampler_->Drain(visit);
  if (Preempters* const preempters = aggregator_.preempters(); preempters != nullptr) preempters->Read();
}

// Empties the rings while names are looked up, because that may take seconds, and rings fill earlier. The aggregator
// can't take records meanwhile: they are kept for the next Drain. keeper_ calls this on its thread: meanwhile the one
// that looks up names, which holds mutex_, uses neither the rings nor the backlog (Aggregator::OnNamed).
void Impl::KeepRecords() {
  backlog_.Keep(sampler_->layout(), [this](UnwindBacklog::Visit visit) { ReadRings(visit); });
}

// Called after each name. Returns true once in kNamingStepNs; then also calls KeepRecords, if there is no keeper.
bool Impl::StepNaming() {
  const uint64_t now_ns = sys::ClockNs(CLOCK_MONOTONIC);
  if (now_ns - at_.named_ns < kNamingStepNs) return false;
  at_.named_ns = now_ns;
  const bool streams = phase_ == Phase::kRunning && options_.mode != RingMode::kOverwrite;
  if (!streams || keeper_.is_open()) return true;
  const uint64_t began_ns = sys::ClockNs(CLOCK_THREAD_CPUTIME_ID);
  KeepRecords();
  own_cpu_ns_ -= sys::ClockNs(CLOCK_THREAD_CPUTIME_ID) - began_ns;  // the sampler has added it
  return true;
}

// Drains first, because side-band records say which threads exist.
void Impl::FindRunning() {
  if (options_.clock != SessionClock::kWall) return;
  Drain();
  aggregator_.FindRunning();
}

void Impl::Halt() {
  const std::lock_guard<std::mutex> lock(mutex_);
  HaltLocked();
}

void Impl::HaltLocked() {
  if (phase_ != Phase::kRunning) return;
  keeper_.Stop();
  FindRunning();
  aggregator_.SwitchesKnownUntil(sys::ClockNs(CLOCK_MONOTONIC));
  if (absl::Status status = sampler_->Stop(); !status.ok()) notes_.emplace_back(status.message());
  if (Preempters* const preempters = aggregator_.preempters(); preempters != nullptr) {
    if (absl::Status status = preempters->Stop(); !status.ok()) notes_.emplace_back(status.message());
  }
  at_.stopped_ns = sys::ClockNs(CLOCK_MONOTONIC);  // no record is later than this
  flight_.EndAt(at_.stopped_ns);
  phase_ = Phase::kStopping;
  Drain();
  {
    const CpuTime cpu_time(own_cpu_ns_);
    aggregator_.StopTimelines(at_.stopped_ns);
    aggregator_.StopLocks();
  }
  phase_ = Phase::kStopped;
  if (waiter_) waiter_->Wake();
}

absl::Status Impl::Gate(bool paused) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (phase_ != Phase::kRunning) {
    return absl::Status(absl::StatusCode::kFailedPrecondition, "the session is stopped. Remedy: start another one");
  }
  if (paused == paused_) return absl::OkStatus();
  if (paused) FindRunning();
  if (Preempters* const preempters = aggregator_.preempters(); preempters != nullptr) {
    if (absl::Status status = paused ? preempters->Pause() : preempters->Resume(); !status.ok()) return status;
  }
  const uint64_t began_ns = sys::ClockNs(CLOCK_MONOTONIC);
  if (absl::Status status = paused ? sampler_->Pause() : sampler_->Resume(); !status.ok()) return status;
  paused_ = paused;
  const uint64_t now_ns = sys::ClockNs(CLOCK_MONOTONIC);
  if (!paused) {
    aggregator_.Resume(now_ns);
    return absl::OkStatus();
  }
  aggregator_.SwitchesKnownUntil(began_ns);
  Drain();  // nothing is held back any more
  aggregator_.Pause(now_ns);
  return absl::OkStatus();
}

}  // namespace perfkit::session
