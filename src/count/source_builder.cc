// One attempt per event and path.
#include "src/count/source_builder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "src/count/paths.h"
#include "src/count/tick_rate.h"
#include "src/event/attr.h"
#include "src/open/place.h"
#include "src/sys/perf_error.h"
#include "src/sys/rseq.h"

namespace perfkit::count {
namespace {

// Between two renewals the tick rate's error of some parts in a million adds up to less than 0.1 us.
constexpr uint64_t kMaxAgeMs = 20;
// A read(2) within 1 us was not interrupted.
constexpr uint64_t kQuickReadsPerMs = 1000;

bool IsInline(ReadPath path) { return path == ReadPath::kRing || path == ReadPath::kThreadClock; }

// Whether reading the register pays: in a virtual machine it may trap, and then costs more than a system call.
bool IsCheaperThanRead(const UserPage& page, int fd) {
  constexpr int kRounds = 32;
  uint64_t by_register = ~uint64_t{0}, by_kernel = ~uint64_t{0};
  for (int i = 0; i < kRounds; ++i) {
    UserCount count;
    const uint64_t start = ReadTicks();
    const bool readable = ReadUserCount(page, count);
    const uint64_t middle = ReadTicks();
    uint64_t words[3 + kMaxEvents];  // as many as a group of any size returns
    const bool read = sys::kernel().read(fd, words, sizeof(words)) > 0;
    if (readable) by_register = std::min(by_register, middle - start);
    if (read) by_kernel = std::min(by_kernel, ReadTicks() - middle);
  }
  return by_register < by_kernel;
}

// Clocks run on whatever is excluded, and what the kernel raises is never the user's.
bool CanBeUserOnly(const EventConfig& event) {
  return !event.kernel_side && !IsSoftware(event, sys::kSwTaskClock) && !IsSoftware(event, sys::kSwCpuClock);
}

bool IsThreads(const Target& target) {
  return target.kind != Target::Kind::kCpu && target.kind != Target::Kind::kSystem;
}

absl::Status NoSuchPath(const std::string& asked, ReadPath path) {
  return absl::UnavailableError(absl::StrFormat("%s: it cannot be read by %s", asked, ReadPathName(path)));
}

}  // namespace

SourceBuilder::SourceBuilder(Groups groups, const Target& target, const CounterOptions& options, uint32_t banned)
    : groups_(groups),
      target_(target),
      options_(options),
      banned_(banned),
      source_(std::make_unique<Source>(target, options)) {
  for (const std::vector<EventConfig>& group : groups_) {
    for (const EventConfig& event : group) {
      source_->slots_.emplace_back().event = event;
      const bool migrations = IsSoftware(event, sys::kSwCpuMigrations);
      detailed_switches_ = detailed_switches_ || (migrations && (options.user_only || !rights_.may_count_kernel()));
      can_multiplex_ = can_multiplex_ || CanMultiplex(event);
      if (IsSoftware(event, sys::kSwTaskClock) && IsThreads(target_)) clock_slot_ = source_->slots_.size() - 1;
    }
  }
  if (source_->slots_.size() == 1) clock_slot_ = kNoSlot;
  format_.alone = source_->slots_.size() - (clock_slot_ != kNoSlot ? 1 : 0) <= 1;
  if (!can_multiplex_)
    format_.times = clock_slot_ != kNoSlot ? GroupFormat::Times::kEnabled : GroupFormat::Times::kNone;
  if (IsThisThread()) source_->plan_.owner = ThreadSerial();
  source_->plan_.cpu = sys::CurrentCpuWord();
}

absl::StatusOr<std::unique_ptr<Source>> SourceBuilder::Build() {
  size_t i = 0;
  for (const std::vector<EventConfig>& group : groups_) {
    if (group.size() > 1) open_group_ = 0;
    for (size_t k = 0; k < group.size(); ++k, ++i) {
      if (i == clock_slot_) continue;
      if (absl::Status status = Place(i, group.size() > 1 && !group[0].weak_group); !status.ok()) return status;
    }
    if (group.size() > 1) open_group_ = 0;
  }
  if (clock_slot_ != kNoSlot) {  // last: it needs no event of its own where there is a group
    if (absl::Status status = Place(clock_slot_, false); !status.ok()) return status;
  }
  for (const PerfGroup& group : source_->groups_) {
    if (target_.enable_on_exec) continue;  // off until then, and whole when it starts
    if (absl::Status status = group.Settle(); !status.ok()) return status;
  }
  MapEpochPage();
  Summarise();
  AllowReadInPlace();
  return std::move(source_);
}

// The first path that works. The reason kept for a failure is the first one: it belongs to the best path. An error only
// where the set has to be whole.
absl::Status SourceBuilder::Place(size_t i, bool strict_group) {
  absl::Status reason = RefuseSilentZero(event(i));
  if (reason.ok()) {
    reason = NoSuchPath(Asked(i), options_.only_path.value_or(ReadPath::kGroupRead));
    bool tried = false;
    for (const ReadPath path : PathsFor(event(i), target_)) {
      if (options_.only_path && path != *options_.only_path) continue;
      if (IsInline(path) && (banned_ >> i & 1) != 0) continue;
      const absl::Status status = Try(path, i, strict_group);
      if (status.ok()) {
        slot(i).path = path;
        return status;
      }
      if (!tried) reason = status;
      tried = true;
    }
  }
  slot(i).reason = reason;
  slot(i).standing.flags = Validity::kNotCounted;
  source_->plan_.missing |= 1u << i;
  return options_.require_all ? reason : absl::OkStatus();
}

absl::Status SourceBuilder::Try(ReadPath path, size_t i, bool strict_group) {
  switch (path) {
    case ReadPath::kUserPage: return OpenUserPage(i, strict_group);
    case ReadPath::kRing: return OpenRing(i);
    case ReadPath::kThreadClock: return IsSoftware(event(i), sys::kSwTaskClock) ? OpenClock(i) : OpenMigrations(i);
    case ReadPath::kGroupRead: return OpenInGroup(i, strict_group);
    case ReadPath::kUsage: return OpenUsage(i);
  }
  return absl::InternalError("no such path");
}

// An event that the kernel raises in its own code, asked for in user space only, would open and stay 0.
absl::Status SourceBuilder::RefuseSilentZero(const EventConfig& event) const {
  if (!event.kernel_side || !event.exclude_kernel) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("event '%s': the kernel raises it in its own code, so that in user space only it would "
                      "count 0 for ever. Remedy: leave the modifier out.",
                      event.name));
}

open::OpenRequest SourceBuilder::RequestFor(size_t i) const {
  const EventConfig& wanted = event(i);
  open::OpenRequest request;
  request.attr = event::ToAttr(wanted, wanted.parts[0]);
  request.may_narrow = !wanted.privilege_given && !wanted.kernel_side;
  if (options_.user_only && request.may_narrow) request.attr.exclude_kernel = request.attr.exclude_hv = 1;
  request.lower_precise = wanted.precise_max;
  request.asked = Asked(i);
  return request;
}

void SourceBuilder::UsePage(const UserPage* page) {
  if (source_->plan_.page == nullptr) source_->plan_.page = page;
}

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
  if (!detailed_switches_) return NoSuchPath(Asked(i), ReadPath::kThreadClock);
  if (absl::Status status = NeedSwitchRing(); !status.ok()) return status;
  source_->migrations_.Start(*source_->switch_ring_, *source_->plan_.cpu);
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
  constexpr uint8_t kEmptyRecordShift = 3;  // a sample without fields is its 8-byte header
  if (detailed_switches_ && IsSoftware(event(i), sys::kSwCpuMigrations)) return NoSuchPath(Asked(i), ReadPath::kRing);
  open::OpenRequest request = RequestFor(i);
  request.attr.sample_period_or_freq = 1;
  request.attr.watermark = 1;
  request.attr.wakeup_events_or_watermark = ~0u;  // nobody polls: no wake-ups
  absl::StatusOr<open::LiveRing> ring = open::LiveRing::Open(request, 1, rights_);
  if (!ring.ok()) return ring.status();
  if (ring->narrowed() || request.attr.exclude_kernel != 0) slot(i).standing.flags |= Validity::kUserOnly;
  UsePage(ring->page());
  AddRingCount(*ring, kEmptyRecordShift, i);
  source_->rings_.push_back(*std::move(ring));
  return absl::OkStatus();
}

void SourceBuilder::AddRingCount(const open::LiveRing& ring, uint8_t shift, size_t i) {
  detail::ReadPlan& plan = source_->plan_;
  plan.rings[plan.ring_count++] = {&ring.page()->data_head, shift, static_cast<uint8_t>(i)};
}

absl::Status SourceBuilder::OpenUsage(size_t i) {
  const std::optional<UsageField> field = UsageFieldFor(event(i).parts[0].config);
  Usage usage;
  if (!field || !usage.Read()) return NoSuchPath(Asked(i), ReadPath::kUsage);
  // getrusage counts user and kernel alike: it cannot stand in for a half.
  if (event(i).privilege_given && event(i).exclude_kernel != event(i).exclude_user) {
    return NoSuchPath(Asked(i), ReadPath::kUsage);
  }
  slot(i).usage_field = *field;
  source_->usage_mask_ |= 1u << i;
  return absl::OkStatus();
}

// PerfError's advice to ask for user space only is no help where user space alone would count 0.
absl::Status SourceBuilder::ExplainKernelSide(size_t i, const absl::Status& status) const {
  if (!event(i).kernel_side || !absl::IsPermissionDenied(status)) return status;
  const std::string message = absl::StrFormat(
      "%s: the kernel raises it in its own code, which this process may not watch (kernel.perf_event_paranoid is %s). "
      "Remedy: lower kernel.perf_event_paranoid to 1 or grant CAP_PERFMON; on this thread, without only_path, perfkit "
      "counts context-switches and cpu-migrations from switch records, which need no right.",
      Asked(i), rights_.paranoid ? absl::StrFormat("%d", *rights_.paranoid) : "unreadable");
  return absl::PermissionDeniedError(message);
}

absl::Status SourceBuilder::AddPart(size_t i, size_t part, PerfGroup& group) {
  const Member member{&event(i), part, static_cast<uint8_t>(i)};
  return ExplainKernelSide(i, group.Add(member, target_, options_.user_only, rights_));
}

// Into the open group if it fits there; else, unless the user wrote the group, into a new one.
absl::Status SourceBuilder::OpenInGroup(size_t i, bool strict_group) {
  if (i == clock_slot_ && AdoptClock(i)) return absl::OkStatus();
  std::vector<PerfGroup>& groups = source_->groups_;
  absl::Status status = absl::UnavailableError("");
  if (open_group_ != 0 && event(i).parts.size() == 1) {
    status = AddPart(i, 0, groups[open_group_ - 1]);
    if (!status.ok() && strict_group) return status;
  }
  if (!status.ok()) {
    std::vector<PerfGroup> parts;
    for (size_t part = 0; part < event(i).parts.size(); ++part) {
      parts.emplace_back(format_);
      if (status = AddPart(i, part, parts.back()); !status.ok()) return status;
    }
    for (PerfGroup& group : parts) groups.push_back(std::move(group));
    if (parts.size() == 1) open_group_ = groups.size();
  }
  source_->grouped_ |= 1u << i;
  if (can_multiplex_) source_->timed_ |= 1u << i;
  const PerfGroup& group = groups.back();
  const bool user_only = group.narrowed(group.members().size() - 1) || event(i).exclude_kernel || options_.user_only;
  if (user_only && CanBeUserOnly(event(i))) slot(i).standing.flags |= Validity::kUserOnly;
  return absl::OkStatus();
}

bool SourceBuilder::AdoptClock(size_t i) {
  for (PerfGroup& group : source_->groups_) {
    if (!group.AdoptClock(static_cast<uint8_t>(i))) continue;
    source_->grouped_ |= 1u << i;
    return true;
  }
  return false;
}

// In a group like any other, with its page mapped besides: the register when it can be read, the group when not.
absl::Status SourceBuilder::OpenUserPage(size_t i, bool strict_group) {
  if (event(i).parts.size() != 1) return NoSuchPath(Asked(i), ReadPath::kUserPage);
  if (absl::Status status = OpenInGroup(i, strict_group); !status.ok()) return status;
  const PerfGroup& group = source_->groups_.back();
  std::optional<sys::Mapping> page = sys::Mapping::ReadOnly(group.fd(group.members().size() - 1), sys::PageSize());
  const auto* const user_page = page ? reinterpret_cast<const UserPage*>(page->data()) : nullptr;
  if (user_page == nullptr || !IsCheaperThanRead(*user_page, group.fd(group.members().size() - 1))) {
    // It is open and counts: by the group.
    slot(i).path = ReadPath::kGroupRead;
    return absl::OkStatus();
  }
  detail::ReadPlan& plan = source_->plan_;
  UsePage(user_page);
  plan.user_pages[plan.user_page_count++] = {user_page, static_cast<uint8_t>(i)};
  source_->user_page_mask_ |= 1u << i;
  source_->user_pages_.push_back(*std::move(page));
  return absl::OkStatus();
}

// Without an inline event the leader's page still tells epochs apart: whether the thread was switched.
// Only a comfort: where no page can be mapped, numbers are the same, and every one may have been switched.
void SourceBuilder::MapEpochPage() {
  if (source_->plan_.page != nullptr || !IsThisThread() || source_->groups_.empty()) return;
  std::optional<sys::Mapping> page = sys::Mapping::ReadOnly(source_->groups_.front().fd(0), sys::PageSize());
  if (!page) return;
  UsePage(reinterpret_cast<const UserPage*>(page->data()));
  source_->user_pages_.push_back(*std::move(page));
}

void SourceBuilder::Summarise() {
  detail::ReadPlan& plan = source_->plan_;
  const bool needs_kernel = (source_->grouped_ & ~source_->user_page_mask_) != 0 || source_->usage_mask_ != 0;
  plan.all_fast = plan.page != nullptr && !needs_kernel;
}

// One group of this thread, of events that cannot multiplex, whose numbers the kernel writes in the order of the set.
void SourceBuilder::AllowReadInPlace() {
  if (!IsThisThread() || source_->plan_.page == nullptr || source_->groups_.size() != 1) return;
  const PerfGroup& group = source_->groups_.front();
  std::vector<uint8_t> order = group.members();
  if (group.format().time_words() == 1) order.insert(group.format().alone ? order.end() : order.begin(), group.clock());
  const size_t size = source_->slots_.size();
  if (can_multiplex_ || group.places() != 1 || order.size() != size || !std::ranges::is_sorted(order)) return;
  const bool headed = !group.format().alone;
  const auto bytes = static_cast<ssize_t>((size + (headed ? 1 : 0)) * sizeof(uint64_t));
  source_->in_place_ = {group.fd(0), headed ? group.members().size() : 0, bytes};
}

}  // namespace perfkit::count
