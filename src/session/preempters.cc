// There is a second sampler, because the session's own one samples only threads of this process. The threads that ran
// after the first preempter are known only by the switches of other programs. Records of both samplers are not merged.
// A preempted wait is held back until the switches were read that happened before its end.
#include "src/session/preempters.h"

#include <algorithm>
#include <utility>

#include "perfkit/sample.h"
#include "src/sys/clock.h"

namespace perfkit::session {
namespace {

constexpr size_t kRingBytes = 256 << 10;  // some 2,000 switches
// Switches are kept this long: the session may read its own records that much later, if it reads files for names.
constexpr uint64_t kLateNs = 1'000'000'000;
constexpr uint64_t kHeldBackNs = 60'000;  // records that are later than this were not all read

}  // namespace

Preempters::Preempters(Sampler sampler, SwitchFormat format, std::optional<WakingFormat> wakings, uint32_t pid)
    : sampler_(std::move(sampler)),
      format_(std::move(format)),
      pid_(pid),
      preemptions_(pid),
      wakings_(std::move(wakings)),
      wakers_(pid) {}

absl::StatusOr<std::unique_ptr<Preempters>> Preempters::Open(uint32_t pid, size_t memory_bytes, bool wakers) {
  absl::StatusOr<SwitchFormat> format = SwitchFormat::Read();
  if (!format.ok()) return format.status();
  SamplerOptions options{.events = {{.event = EventSpec(kSwitchEvent), .rate = Period{1}, .stack = false}},
                         .fields = kSampleCpu,
                         .ring_bytes = kRingBytes,
                         .memory_bytes = memory_bytes};
  std::optional<WakingFormat> wakings;
  if (wakers) {
    absl::StatusOr<WakingFormat> waking = WakingFormat::Read();
    if (!waking.ok()) return waking.status();
    wakings = *std::move(waking);
    options.events.push_back({.event = EventSpec(kWakingEvent), .rate = Period{1}, .stack = false});
  }
  absl::StatusOr<Sampler> sampler = Sampler::Open(options, Target::System());
  if (!sampler.ok()) return sampler.status();
  return std::unique_ptr<Preempters>(new Preempters(*std::move(sampler), *std::move(format), std::move(wakings), pid));
}

absl::Status Preempters::Resume() {
  Read();
  preemptions_.Lose();  // what happened in the pause is not known
  return sampler_.Resume();
}

void Preempters::Read() {
  read_ns_ = sys::ClockNs(CLOCK_MONOTONIC);
  sampler_.Drain([this](const SamplerRecord& record) { Add(record); });
}

void Preempters::Add(const SamplerRecord& record) {
  if (record.type == static_cast<uint32_t>(RecordType::kLost)) return preemptions_.Lose();
  if (record.type != static_cast<uint32_t>(RecordType::kSample)) return;
  const std::optional<Sample> sample = Sample::Parse(record, sampler_.layout());
  if (record.event == 1) return AddWaking(record, sample);
  const std::optional<Switch> change = sample && !record.foreign ? format_.Parse(sample->raw()) : std::nullopt;
  if (!change || !sample->time_ns() || !sample->cpu() || !sample->task()) return preemptions_.Lose();
  ++switches_;
  if (wakings_) wakers_.Left(sample->task()->pid, change->from_tid);
  preemptions_.Add({.time_ns = *sample->time_ns(),
                    .cpu = *sample->cpu(),
                    .from_pid = sample->task()->pid,
                    .from_tid = change->from_tid,
                    .to_tid = change->to_tid,
                    .is_preempted = change->is_preempted,
                    .to_name = change->to_name});
}

void Preempters::AddWaking(const SamplerRecord& record, const std::optional<Sample>& sample) {
  if (!sample || record.foreign || !sample->time_ns() || !sample->task()) return;
  const std::optional<Waking> waking = wakings_->Parse(sample->raw());
  if (waking) wakers_.Add(*waking, *sample->task(), *sample->time_ns());
}

// Both samplers hold back the records of the latest 50 us. The end of the wait was read already.
std::optional<Waker> Preempters::WakerOf(uint32_t tid, uint64_t from_ns, uint64_t to_ns) {
  if (!wakings_) return std::nullopt;
  if (read_ns_ < to_ns + kHeldBackNs) Read();
  return wakers_.Find(tid, from_ns, to_ns);
}

void Preempters::Hold(const OffCpuSpan& span, uint32_t tid) { held_.push_back({span, tid}); }

// Returns true if a thread of this process had this tid during `span`. The profile also has the ended threads.
bool Preempters::IsOwn(const Profile& profile, uint32_t tid, const OffCpuSpan& span) const {
  return std::ranges::any_of(profile.threads, [&](const ProfileThread& thread) {
    return thread.pid == pid_ && thread.tid == tid && thread.first_ns <= span.to_ns && thread.last_ns >= span.from_ns;
  });
}

void Preempters::Release(const Profile& profile, OffCpu::Emit emit) {
  uint64_t latest_ns = 0;
  for (Held& held : std::exchange(held_, {})) {
    OffCpuSpan& span = held.span;
    latest_ns = std::max(latest_ns, span.to_ns);
    span.preempter = preemptions_.Find(
        {.tid = held.tid, .ran_from_ns = span.ran_from_ns, .from_ns = span.from_ns, .to_ns = span.to_ns});
    if (span.preempter && !span.preempter->is_own) span.preempter->is_own = IsOwn(profile, span.preempter->tid, span);
    emit(span);
  }
  preemptions_.Forget(latest_ns - std::min(latest_ns, kLateNs));
  wakers_.Forget(read_ns_ - std::min(read_ns_, kLateNs));
}

uint32_t Preempters::WaitOf(const Preempter& preempter, ProfileBuilder& builder) {
  const WaitKey key(preempter.tid, preempter.name, preempter.is_own.value_or(false), preempter.others);
  const auto [entry, is_new] = waits_.try_emplace(key, ProfileSample::kNoWait);
  if (is_new) {
    entry->second = builder.AddWait({.preempted = true, .preempter = preempter.InProfile(builder)});
  }
  return entry->second;
}

void Preempters::AddAccounting(ProfileAccounting& accounting) const {
  const SamplerStats stats = sampler_.stats();
  accounting.switches_read = switches_;
  accounting.switches_lost = stats.events[0].lost + stats.events[0].malformed;
  accounting.own_cpu_ns += stats.own_cpu_ns;
  accounting.kernel_cpu_ns += stats.kernel_cpu_ns;
}

}  // namespace perfkit::session
