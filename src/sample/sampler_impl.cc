// Opens, switches and pauses a sampler, changes its rates, and takes snapshots. Each function leaves the sampler as it
// was if it fails. A rate is changed by ioctl if each event has one thread; if threads inherit events, the ioctl does
// not reach all of them, so Drain then replaces the events. The size of dumps is changed by Drain, too, because the
// records of the old events have to be delivered to a visitor.
#include "src/sample/sampler_impl.h"

#include <errno.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_format.h"
#include "src/sys/clock.h"
#include "src/sys/kernel.h"
#include "src/sys/perf_error.h"

namespace perfkit::sample {
namespace {

constexpr size_t kMaxStates = 64;  // Maximum number of states that wait for a Drain.

// Descriptors that are taken until this is destroyed, so that as many are left for what a sampler's owner opens next.
class SpareDescriptors {
 public:
  SpareDescriptors() {
    for (sys::OwnedFd& fd : fds_) fd = sys::OwnedFd(sys::kernel().epoll_create1(EPOLL_CLOEXEC));
  }
  SpareDescriptors(const SpareDescriptors&) = delete;
  SpareDescriptors& operator=(const SpareDescriptors&) = delete;

 private:
  std::array<sys::OwnedFd, 8> fds_;
};

}  // namespace

SamplerImpl::SamplerImpl(Plan plan)
    : plan_(std::move(plan)),
      level_(plan_.FullLevel()),
      live_(plan_),
      rings_(plan_),
      writers_(plan_),
      duplicates_(plan_, writers_),
      attacher_(plan_, rings_, duplicates_),
      accounting_(plan_.events().size()),
      losses_(plan_, rings_, writers_, accounting_),
      budget_(plan_, accounting_),
      replacer_(plan_, rings_, writers_, duplicates_, attacher_, losses_),
      drain_(plan_, rings_, accounting_),
      fork_listener_([](void* self) { static_cast<SamplerImpl*>(self)->OnForkedChild(); }, this) {}

// While the fork listener is still registered.
SamplerImpl::~SamplerImpl() {
  const sys::ForkBlocker fork_blocker;
  rings_.Close();
}

absl::StatusOr<std::unique_ptr<SamplerImpl>> SamplerImpl::OpenAs(const SamplerOptions& options, const Target& target) {
  absl::StatusOr<Plan> plan = Plan::Make(options, target);
  if (!plan.ok()) return plan.status();
  auto impl = std::make_unique<SamplerImpl>(*std::move(plan));
  if (absl::Status status = impl->OpenAll(); !status.ok()) return status;
  return impl;
}

// Rings of CPUs that take the last descriptors would leave none for what is opened next, such as a session's pipe.
absl::StatusOr<std::unique_ptr<SamplerImpl>> SamplerImpl::OpenSparing(const SamplerOptions& options,
                                                                      const Target& target) {
  const sys::ForkBlocker fork_blocker;
  const SpareDescriptors spare;
  return OpenAs(options, target);
}

absl::StatusOr<std::unique_ptr<SamplerImpl>> SamplerImpl::Open(const SamplerOptions& options, const Target& target) {
  using Rings = SamplerOptions::Rings;
  const bool is_cpu = target.kind == Target::Kind::kCpu || target.kind == Target::Kind::kSystem;
  if (options.rings != Rings::kAuto || is_cpu) return OpenAs(options, target);
  absl::StatusOr<std::unique_ptr<SamplerImpl>> impl = OpenSparing(options, target);
  if (!IsOutOfDescriptors(impl.status())) return impl;
  SamplerOptions fewer = options;
  fewer.rings = Rings::kPerThread;
  absl::StatusOr<std::unique_ptr<SamplerImpl>> by_thread = OpenAs(fewer, target);
  if (!by_thread.ok()) return OpenAs(options, target);
  (*by_thread)->rings_.ExplainRingsOfThreads(impl.status());
  return by_thread;
}

uint64_t SamplerImpl::Now() const { return sys::ClockNs(plan_.options().clock_id); }

absl::Status SamplerImpl::OpenAll() {
  const absl::StatusOr<std::vector<int>> cpus = CpusOf(plan_);
  if (!cpus.ok()) return cpus.status();
  std::vector<pid_t> tids = {RingSlot::kShared};
  if (!plan_.per_cpu_rings() && !plan_.whole_cpus()) {
    absl::StatusOr<std::vector<pid_t>> threads = ThreadsNow(plan_);
    if (!threads.ok()) return threads.status();
    tids = *std::move(threads);
  }
  if (absl::Status status = live_.Open(plan_); !status.ok()) return status;
  if (absl::Status status = rings_.Open(tids, *cpus); !status.ok()) {
    // Otherwise descriptors may be short: then the error says how many would be needed.
    if (IsOutOfMemory(status)) return status;
    const absl::StatusOr<std::vector<pid_t>> threads = ThreadsNow(plan_);
    return threads.ok() ? attacher_.ExplainDescriptors(status, threads->size(), cpus->size()) : status;
  }
  for (uint32_t event = 0; event < plan_.events().size(); ++event) {
    if (absl::Status status = CheckFits(plan_, event); !status.ok()) return status;
  }
  if (absl::Status status = attacher_.AttachAll(level_, true); !status.ok()) return status;
  Index(0);
  return rings_.OpenPoll();
}

void SamplerImpl::Index(uint64_t since_ns) {
  writers_.Rebuild({&rings_.active, &rings_.spare, &rings_.side}, level_, since_ns);
  drain_.Index(live_, writers_.writers());
}

bool SamplerImpl::user_only(size_t event) const {
  // One event that was restricted is enough: a sum over threads and CPUs is then of user space in part.
  const std::vector<RingEvent>& events = rings_.active.events;
  return std::any_of(events.begin(), events.end(),
                     [&](const RingEvent& ring_event) { return ring_event.event == event && ring_event.user_only; });
}

// A forked child must not allocate or lock here.
void SamplerImpl::OnForkedChild() {
  state_ = State::kInForkedChild;
  live_.OnForkedChild();  // Before the descriptors are closed: else that waits for handlers that do not exist here.
  rings_.OnForkedChild();
}

absl::Status SamplerImpl::CheckHere() const {
  if (state_ != State::kInForkedChild) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "this sampler was opened before a fork and belongs to the parent process. Remedy: open another one in this "
      "process.");
}

absl::Status SamplerImpl::Start() {
  if (absl::Status here = CheckHere(); !here.ok()) return here;
  if (states_.size() >= kMaxStates) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("this sampler was started %d times, and its records were not read. Remedy: call Drain between "
                        "Stop and Start",
                        kMaxStates));
  }
  state_ = State::kRunning;
  live_.MaintainBriefly();
  const uint64_t begun = Now();
  drain_.Start(begun);
  bool is_empty = true;
  rings_.ForEachSlot([&](RingSlot& slot) {  // New records are later, even if the clock of a foreign sample was ahead.
    if (slot.ring.reader().has_records()) {
      is_empty = false;
    } else {
      slot.last_time_ns = std::max(slot.last_time_ns, begun);
    }
  });
  if (is_empty || plan_.options().mode != RingMode::kStream) states_.clear();
  for (RingSet* const set : {&rings_.side, &rings_.active}) {
    const absl::Status status = set->SwitchAll(true, plan_.target().inherit);
    if (!status.ok()) {
      (void)Stop();  // Some of the events alone would give wrong counts.
      return status;
    }
    // Before the first sample, so that reading is not sampled, and no ring of samples fills meanwhile.
    if (set == &rings_.side && plan_.options().side_band) {
      if (!states_.empty()) states_.back().Close();  // The new one has what the last one still lacks.
      states_.emplace_back(plan_, begun);
    }
  }
  if (follows_threads()) {
    const sys::ForkBlocker fork_blocker;
    threads_.Rescan();
    AttachNewcomers();
    Index(Now());
  }
  budget_.BeginWindow();
  return absl::OkStatus();
}

absl::Status SamplerImpl::Stop() {
  if (absl::Status here = CheckHere(); !here.ok()) return here;
  state_ = State::kStopped;
  if (!states_.empty()) states_.back().Close();  // No sample comes after what would still be read.
  const absl::Status status = rings_.active.SwitchAll(false, plan_.target().inherit);
  if (live_.SwitchedOffSince() != 0) {
    accounting_.AddDecision({.what = SamplerDecision::What::kSamples,
                             .why = SamplerDecision::Why::kNoProgress,
                             .from = level_.slower,
                             .to = level_.slower,
                             .from_ns = live_.SwitchedOffSince(),
                             .to_ns = Now()});
    live_.ForgetSwitchedOff();
  }
  // If threads may have two copies of an event, their FORK and EXIT records are needed even between Stop and Start.
  if (duplicates_.expects_duplicates()) return status;
  const absl::Status side = rings_.side.SwitchAll(false, plan_.target().inherit);
  return status.ok() ? side : status;
}

absl::Status SamplerImpl::Pause() {
  if (absl::Status here = CheckHere(); !here.ok()) return here;
  if (losses_.is_paused()) return absl::OkStatus();
  losses_.BeginPause();
  live_.Pause(true);
  return rings_.Pause(true);
}

absl::Status SamplerImpl::Resume() {
  if (absl::Status here = CheckHere(); !here.ok()) return here;
  if (!losses_.is_paused()) return absl::OkStatus();
  losses_.EndPause();
  live_.Pause(false);
  return rings_.Pause(false);
}

absl::Status SamplerImpl::SetStackBytes(uint32_t bytes) {
  if (absl::Status here = CheckHere(); !here.ok()) return here;
  Plan trial = plan_;
  if (absl::Status status = trial.SetStackBytes(bytes); !status.ok()) return status;
  wanted_stack_ = bytes == plan_.options().stack.stack_bytes ? 0 : bytes;
  return absl::OkStatus();
}

absl::Status SamplerImpl::SetRate(size_t event, SampleRate rate) {
  if (absl::Status here = CheckHere(); !here.ok()) return here;
  if (event >= plan_.asked()) return absl::InvalidArgumentError("there is no event with that index");
  if (absl::Status valid = plan_.CheckNewRate(event, rate); !valid.ok()) return valid;
  const SampleRate before = plan_.events()[event].rate;
  plan_.SetRate(event, rate);
  // PERF_EVENT_IOC_PERIOD does not reach threads that have inherited the event, and their samples have the same id. So
  // the rates of all change together, when the events are replaced.
  if (plan_.inherits()) {
    if (is_running() || rings_.HasRecords()) {
      anew_due_ = true;  // The records in the rings need the old events' writers.
      return absl::OkStatus();
    }
    absl::Status status = OpenAtNewRates();
    if (!status.ok()) plan_.SetRate(event, before);
    return status;
  }
  absl::Status status = ApplyRates(is_running());
  if (status.ok()) return status;
  plan_.SetRate(event, before);
  (void)ApplyRates(is_running());  // An event that can't be restored keeps its true weight.
  return status;
}

// Requires that all events are disabled.
absl::Status SamplerImpl::OpenAtNewRates() {
  if (absl::Status status = replacer_.Open(level_); !status.ok()) return status;
  TakeOver(level_, Now());
  return absl::OkStatus();
}

absl::Status SamplerImpl::ApplyRates(bool on) {
  absl::Status failed;
  for (RingSet* const set : {&rings_.active, &rings_.spare}) {
    for (RingEvent& ring_event : set->events) {
      if (ring_event.event == RingEvent::kTracking) continue;
      if (absl::Status status = ApplyRate(ring_event, on && set == &rings_.active); !status.ok()) failed = status;
    }
  }
  return failed;
}

// If it fails or the visitor throws, the next drain tries again: until then the events are off.
void SamplerImpl::LetThreadsAdvance(Visit visit, size_t max_records) {
  const uint64_t since_ns = live_.SwitchedOffSince();
  if (since_ns == 0) return;
  SamplerDecision decision = budget_.LetAdvance();
  decision.from_ns = since_ns;
  if (CarryOut(decision, visit, max_records)) live_.ForgetSwitchedOff();
}

absl::Status SamplerImpl::ChangeRates(const SamplingLevel& level) {
  const SamplingLevel before = std::exchange(level_, level);
  absl::Status status = ApplyRates(false);
  if (status.ok()) return status;
  level_ = before;
  (void)ApplyRates(false);  // An event that can't be restored keeps its true weight.
  return status;
}

// The event is disabled during the change, for two reasons. When it is enabled again, it starts with a whole period
// (perf_swevent_add). For an enabled event the kernel takes a sample or two at once, which represent less
// (PERF_EVENT_IOC_PERIOD clears hw.period_left). And no sample is taken at the time of the change.
absl::Status SamplerImpl::ApplyRate(RingEvent& ring_event, bool on) {
  Writer& writer = *writers_.Find(ring_event.id);
  const uint64_t rate = plan_.KernelRate(ring_event.event, level_);
  if (rate == writer.rate) return absl::OkStatus();
  if (on) {
    if (absl::Status status = ring_event.Switch(sys::kIocDisable); !status.ok()) return status;
  }
  losses_.SettleRate(ring_event);
  absl::Status status;
  if (sys::kernel().ioctl(ring_event.fd.get(), sys::kIocPeriod, reinterpret_cast<unsigned long>(&rate)) == 0) {
    writer.rate = rate;
    writer.weight.Change(Now(), plan_.Represents(ring_event.event, level_));
  } else {
    status = sys::PerfError(
        sys::PerfCall::kIoctl, errno,
        absl::StrFormat("changing the rate of event '%s'", plan_.events()[ring_event.event].config.name));
  }
  if (!on) return status;
  const absl::Status switched = ring_event.Switch(sys::kIocEnable);
  return status.ok() ? switched : status;
}

// Redirecting the output of an enabled event takes an RCU grace period in the kernel, 10 ms here. Disabling one event
// and enabling another one that writes to another ring takes 2 us. So there are two of each. If the calling thread
// alone is sampled, nothing happens in between. Other threads continue, so both sets are enabled for a moment.
absl::StatusOr<Sampler::Takeover> SamplerImpl::Snapshot() {
  if (absl::Status here = CheckHere(); !here.ok()) return here;
  if (plan_.options().mode != RingMode::kOverwrite || !is_running()) {
    return absl::FailedPreconditionError("snapshots require RingMode::kOverwrite, and a sampler that was started");
  }
  const bool alone = plan_.target().kind == Target::Kind::kThisThread && plan_.target().id == sys::kernel().gettid();
  const bool inherited = plan_.target().inherit;
  RingSet &active = rings_.active, &spare = rings_.spare;
  Sampler::Takeover takeover{.from_ns = Now(), .to_ns = 0};
  const absl::Status first = alone ? active.SwitchAll(false, false) : spare.SwitchAll(true, inherited);
  const absl::Status second = alone ? spare.SwitchAll(true, false) : active.SwitchAll(false, inherited);
  takeover.to_ns = Now();
  if (!first.ok()) return first;
  if (!second.ok()) return second;
  const sys::ForkBlocker fork_blocker;
  std::swap(active, spare);
  snapshot_ns_ = takeover.to_ns;
  return takeover;
}

SamplerStats SamplerImpl::Stats() {
  SamplerStats stats;
  if (state_ == State::kInForkedChild) return stats;
  losses_.SettleAtEnd();
  stats.events = accounting_.events();
  // What the rings hold is not delivered yet, and not counted either.
  losses_.AddCounts(stats, plan_.options().mode == RingMode::kOverwrite && is_running());
  for (size_t i = 0; i < stats.events.size(); ++i) {
    EventAccounting& event = stats.events[i];
    live_.FillAccounting(i, event);
    if (!plan_.events()[i].clock) continue;
    event.unsampled_ns = event.counted - std::min(event.counted, event.represented + accounting_.missed_ns(i));
  }
  const auto asked = stats.events.begin() + static_cast<ptrdiff_t>(plan_.asked());
  stats.full.assign(asked, stats.events.end());
  stats.events.erase(asked, stats.events.end());
  stats.threads_missed = threads_.missed();
  if (!states_.empty()) stats.processes_unread = states_.back().unread();
  budget_.AddCosts(level_, live_.TakeHandlersNs());
  accounting_.Fill(stats);
  return stats;
}

std::vector<SamplerCount> SamplerImpl::Counts() {
  if (state_ == State::kInForkedChild) return {};
  std::vector<SamplerCount> counts = losses_.Counts();
  for (SamplerCount& count : counts) {
    count.full_stack = count.event >= plan_.asked();
    if (count.full_stack) count.event -= static_cast<uint32_t>(plan_.asked());
  }
  return counts;
}

}  // namespace perfkit::sample
