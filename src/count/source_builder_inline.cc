// The paths without a system call that have events of their own: the thread's clock, and rings whose heads count.
#include <utility>

#include "src/count/paths.h"
#include "src/count/source_builder.h"
#include "src/count/tick_rate.h"

namespace perfkit::count {
namespace {

// Between two renewals the error of the tick rate, some parts in a million, adds up to less than 0.1 us.
constexpr uint64_t kMaxAgeMs = 20;
// A read(2) that takes less than 1 us was not interrupted.
constexpr uint64_t kQuickReadsPerMs = 1000;

}  // namespace

absl::Status SourceBuilder::OpenClock(size_t i) {
  if (source_->clock_) return absl::InvalidArgumentError(Asked(i) + ": it is in the set already");
  absl::StatusOr<open::LiveRing> clock = open::LiveRing::Open(RequestFor(i), 0, rights_);
  if (!clock.ok()) return clock.status();
  const TickRate rate = TickRateOf(*clock->page());
  if (rate.ns_per_tick_q32 == 0) return absl::UnavailableError("this machine has no tick counter for user space");
  detail::ReadPlan& plan = source_->plan_;
  plan.ns_per_tick_q32 = rate.ns_per_tick_q32;
  plan.max_age_ticks = rate.ticks_per_ms * kMaxAgeMs;
  plan.clock_index = static_cast<uint8_t>(i);
  source_->quick_read_ticks_ = rate.ticks_per_ms / kQuickReadsPerMs;
  source_->clock_ = *std::move(clock);
  plan.page = source_->clock_->page();
  return absl::OkStatus();
}

absl::Status SourceBuilder::NeedSwitchRing() {
  if (source_->switch_ring_) return absl::OkStatus();
  absl::StatusOr<open::LiveRing> ring = OpenSwitchRing(detailed_switches_, rights_);
  if (!ring.ok()) return ring.status();
  source_->switch_ring_ = *std::move(ring);
  UsePage(source_->switch_ring_->page());
  return absl::OkStatus();
}

absl::Status SourceBuilder::OpenMigrations(size_t i) {
  if (!detailed_switches_) return NoSuchPath(i, ReadPath::kThreadClock);
  if (source_->plan_.migration_index < kMaxEvents) {  // Requested under another name: there is one such number.
    source_->copies_.push_back({source_->plan_.migration_index, static_cast<uint8_t>(i)});
    return absl::OkStatus();
  }
  if (absl::Status status = NeedSwitchRing(); !status.ok()) return status;
  source_->migrations_[0].Start(*source_->switch_ring_, *source_->plan_.cpu);
  source_->plan_.migration_index = static_cast<uint8_t>(i);
  return absl::OkStatus();
}

absl::Status SourceBuilder::OpenRing(size_t i) {
  if (RingKindOf(event(i)) == RingKind::kPeriodOne) return OpenPeriodOne(i);
  if (absl::Status status = NeedSwitchRing(); !status.ok()) return status;
  AddRingCount(*source_->switch_ring_, detailed_switches_ ? kDetailedSwitchShift : kBareSwitchShift, i);
  return absl::OkStatus();
}

absl::Status SourceBuilder::OpenPeriodOne(size_t i) {
  constexpr uint8_t kEmptyRecordShift = 3;  // A sample without fields is its 8-byte header.
  if (detailed_switches_ && IsSoftware(event(i), sys::kSwCpuMigrations)) return NoSuchPath(i, ReadPath::kRing);
  const bool tells_epochs = event(i).parts[0].type == sys::kTypeSoftware;
  if (!tells_epochs) {
    if (absl::Status status = NeedEpochPage(); !status.ok()) return status;
  }
  open::OpenRequest request = RequestFor(i);
  request.attr.sample_period_or_freq = 1;
  request.attr.watermark = 1;
  request.attr.wakeup_events_or_watermark = ~0u;  // No wake-ups: no reader polls.
  absl::StatusOr<open::LiveRing> ring = open::LiveRing::Open(request, 1, rights_);
  if (!ring.ok()) return ring.status();
  if (ring->user_only() || request.attr.exclude_kernel != 0) slot(i).fixed_flags.flags |= Validity::kUserOnly;
  if (tells_epochs) UsePage(ring->page());
  AddRingCount(*ring, kEmptyRecordShift, i);
  source_->rings_.push_back(*std::move(ring));
  return absl::OkStatus();
}

void SourceBuilder::AddRingCount(const open::LiveRing& ring, uint8_t shift, size_t i) {
  detail::ReadPlan& plan = source_->plan_;
  plan.rings[plan.ring_count++] = {&ring.page()->data_head, shift, static_cast<uint8_t>(i)};
}

}  // namespace perfkit::count
