// One lock for the sampler and the profile: the session's thread holds it while it drains, a caller while it stops or
// takes a snapshot.
#include "src/session/impl.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "src/base/text.h"
#include "src/sys/clock.h"
#include "src/sys/files.h"
#include "src/sys/kernel.h"

namespace perfkit::session {
namespace {

constexpr int kUsualWaitMs = 100;
constexpr int kMinLookMs = 4;  // each round costs the session's thread about 20 us
constexpr size_t kStitchBytes = 8 << 20;

uint64_t MonotonicNs() { return sys::ClockNs(CLOCK_MONOTONIC); }

std::string ProgramName() {
  const absl::StatusOr<std::string> text = sys::ReadFile("/proc/self/comm");
  return text.ok() ? std::string(base::Trim(*text)) : "";
}

std::unique_ptr<StackUnwinder> MakeUnwinder(const SessionOptions& options, CallStack::Kind stacks) {
  const StackHooks* const hooks = &StackHookTable;
  const bool needed = stacks == CallStack::Kind::kUserDump || options.clock == SessionClock::kWall;
  return hooks != nullptr && needed ? hooks->unwinder(kStitchBytes) : nullptr;
}

AggregatorOptions AggregatorOptionsOf(const SessionOptions& options, CallStack::Kind stacks,
                                      std::unique_ptr<StackUnwinder> unwinder) {
  const StackHooks* const hooks = &StackHookTable;
  return {.stacks = stacks,
          .pid = static_cast<uint32_t>(sys::kernel().getpid()),
          .off_cpu = options.clock == SessionClock::kWall,
          .memory_bytes = options.memory_bytes,
          .lines = hooks != nullptr && options.lines ? hooks->lines : nullptr,
          .unwinder = std::move(unwinder)};
}

std::string DescribeDecision(const SamplerDecision& decision) {
  constexpr std::string_view kWhat[] = {"bytes or calls of a stack", "stacks", "one sample in"};
  constexpr std::string_view kWhy[] = {"the CPU budget", "losses", "room"};
  return absl::StrFormat("at %d ns, for %s: %s from %d to %d", decision.from_ns,
                         kWhy[static_cast<size_t>(decision.why)], kWhat[static_cast<size_t>(decision.what)],
                         decision.from, decision.to);
}

}  // namespace

Impl::Impl(SessionOptions options, OpenedSampler opened, std::unique_ptr<StackUnwinder> unwinder)
    : options_(std::move(options)),
      owner_pid_(sys::kernel().getpid()),
      sampler_(std::move(opened.sampler)),
      aggregator_(std::move(opened.events), AggregatorOptionsOf(options_, opened.stacks, std::move(unwinder))),
      notes_(std::move(opened.notes)) {}

absl::StatusOr<std::shared_ptr<Impl>> Impl::Start(SessionOptions options) {
  absl::StatusOr<OpenedSampler> opened = OpenSampler(options);
  if (!opened.ok()) return opened.status();
  std::unique_ptr<StackUnwinder> unwinder = MakeUnwinder(options, opened->stacks);
  std::shared_ptr<Impl> impl(new Impl(std::move(options), *std::move(opened), std::move(unwinder)), [](Impl* mine) {
    if (!mine->in_forked_child()) delete mine;  // a child has neither the thread nor the lock: it leaves the copy
  });
  absl::StatusOr<sys::Waiter> waiter = sys::Waiter::Open(impl->sampler_.poll_fd());
  if (!waiter.ok()) return waiter.status();
  impl->waiter_.emplace(*std::move(waiter));
  impl->started_ns_ = MonotonicNs();
  impl->aggregator_.SetStart(impl->started_ns_);
  if (absl::Status status = impl->sampler_.Start(); !status.ok()) return status;
  if (!impl->options_.own_thread) return impl;
  if (absl::Status status = impl->thread_.Start("perfkit-session", [raw = impl.get()] { raw->Work(); }); !status.ok()) {
    return status;
  }
  return impl;
}

Impl::~Impl() {
  Halt();
  quit_ = true;
  if (waiter_) waiter_->Wake();
  thread_.Join();
}

bool Impl::in_forked_child() const { return sys::kernel().getpid() != owner_pid_; }

bool Impl::running() const {
  if (in_forked_child()) return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  return phase_ == Phase::kRunning;
}

absl::Status Impl::CheckUsable() const {
  if (phase_ != Phase::kTaken) return absl::OkStatus();
  return absl::Status(absl::StatusCode::kFailedPrecondition,
                      "the session was stopped, and its profile was taken. Remedy: Session::Start another one");
}

// The session's own thread.
void Impl::Work() {
  const bool looks = options_.clock == SessionClock::kWall;
  const auto look_ms = std::chrono::duration_cast<std::chrono::milliseconds>(options_.look_after).count();
  const int wait_ms = looks ? static_cast<int>(std::clamp<int64_t>(look_ms, kMinLookMs, kUsualWaitMs)) : kUsualWaitMs;
  while (!quit_) {
    waiter_->Wait(wait_ms);
    if (!quit_) (void)Poll();
  }
}

absl::Status Impl::Poll() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (absl::Status status = CheckUsable(); !status.ok()) return status;
  if (phase_ != Phase::kRunning) return absl::OkStatus();
  const uint64_t now_ns = MonotonicNs();
  Drain();
  const uint64_t before_ns = sys::ClockNs(CLOCK_THREAD_CPUTIME_ID);
  aggregator_.LookAtSleepers(now_ns - static_cast<uint64_t>(options_.look_after.count()));
  own_cpu_ns_ += sys::ClockNs(CLOCK_THREAD_CPUTIME_ID) - before_ns;
  const auto limit_ns = static_cast<uint64_t>(options_.stop_after.count());
  if (limit_ns != 0 && now_ns - started_ns_ >= limit_ns) HaltLocked();
  return absl::OkStatus();
}

// Streaming: everything. Overwriting: the side band.
void Impl::Drain() {
  sampler_.Drain([&](const SamplerRecord& record) { aggregator_.Add(record, sampler_.layout()); });
}

// A snapshot's records come newest first: they are kept until they can be added in order of time.
void Impl::DrainSnapshot() {
  struct Kept {
    SamplerRecord record;
    uint64_t time_ns = 0;
    size_t at = 0;
  };
  std::vector<std::byte> bytes;
  std::vector<Kept> kept;
  sampler_.Drain([&](const SamplerRecord& record) {
    kept.push_back({record, sampler_.layout().TimeOf(record).value_or(0), bytes.size()});
    const Bytes whole = record.bytes();
    bytes.insert(bytes.end(), whole.data(), whole.data() + whole.size());
  });
  std::stable_sort(kept.begin(), kept.end(), [](const Kept& a, const Kept& b) { return a.time_ns < b.time_ns; });
  for (Kept& one : kept) {
    one.record.data = bytes.data() + one.at;
    aggregator_.Add(one.record, sampler_.layout());
  }
}

void Impl::Halt() {
  const std::lock_guard<std::mutex> lock(mutex_);
  HaltLocked();
}

void Impl::HaltLocked() {
  if (phase_ != Phase::kRunning) return;
  if (options_.mode == RingMode::kOverwrite) {
    Drain();
    if (sampler_.Snapshot().ok()) DrainSnapshot();
  }
  if (absl::Status status = sampler_.Stop(); !status.ok()) notes_.emplace_back(status.message());
  stopped_ns_ = MonotonicNs();  // no record is later
  if (options_.mode != RingMode::kOverwrite) Drain();
  phase_ = Phase::kStopped;
}

Profile Impl::MakeProfile() {
  const uint64_t now_ns = phase_ == Phase::kRunning ? MonotonicNs() : stopped_ns_;
  const SamplerStats stats = sampler_.stats();
  Profile profile = aggregator_.MakeProfile(now_ns, options_.progress);
  profile.program = ProgramName();
  profile.from_ns = started_ns_, profile.to_ns = now_ns;
  profile.realtime_offset_ns = sys::ClockNs(CLOCK_REALTIME) - MonotonicNs();
  for (size_t i = 0; i < stats.events.size(); ++i) profile.events[i].accounting = stats.events[i];
  ProfileAccounting& accounting = profile.accounting;
  accounting.side_band_lost = stats.side_band_lost;
  accounting.unattributed = stats.unattributed;
  accounting.own_cpu_ns = stats.own_cpu_ns + own_cpu_ns_;
  accounting.kernel_cpu_ns = stats.kernel_cpu_ns;
  accounting.notes.insert(accounting.notes.begin(), notes_.begin(), notes_.end());
  for (const SamplerDecision& decision : stats.decisions) accounting.notes.push_back(DescribeDecision(decision));
  return profile;
}

absl::StatusOr<Profile> Impl::Stop() {
  Halt();
  quit_ = true;
  waiter_->Wake();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (absl::Status status = CheckUsable(); !status.ok()) return status;
  phase_ = Phase::kTaken;
  return MakeProfile();
}

absl::StatusOr<Profile> Impl::Snapshot() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (absl::Status status = CheckUsable(); !status.ok()) return status;
  if (phase_ == Phase::kRunning) Drain();
  if (phase_ != Phase::kRunning || options_.mode != RingMode::kOverwrite) return MakeProfile();
  const absl::StatusOr<Sampler::Takeover> taken = sampler_.Snapshot();
  if (!taken.ok()) return taken.status();
  DrainSnapshot();
  Profile profile = MakeProfile();
  aggregator_.ForgetSamples();
  return profile;
}

absl::Status Impl::Gate(bool paused) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (phase_ != Phase::kRunning) {
    return absl::Status(absl::StatusCode::kFailedPrecondition, "the session is stopped. Remedy: start another one");
  }
  if (paused == paused_) return absl::OkStatus();
  if (absl::Status status = paused ? sampler_.Pause() : sampler_.Resume(); !status.ok()) return status;
  paused_ = paused;
  const uint64_t now_ns = MonotonicNs();
  if (!paused) {
    aggregator_.Resume(now_ns);
    return absl::OkStatus();
  }
  Drain();  // nothing is held back any more
  aggregator_.Pause(now_ns);
  return absl::OkStatus();
}

}  // namespace perfkit::session
