// Opens each event by the first of its paths that works, with one attempt for each path. A group's format is chosen
// before anything is opened, because all its members must agree on it. An event that is in the set twice is opened once
// and copied, unless the two may be on counters at different times. After all events are open, the builder provides a
// user page that shows epochs, and marks the copies. Groups: source_builder_groups.cc.
#include "src/count/source_builder.h"

#include <stdlib.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "src/count/paths.h"
#include "src/count/tick_rate.h"
#include "src/event/event_table.h"
#include "src/sys/allocations.h"
#include "src/sys/rseq.h"

namespace perfkit::count {
namespace {

// Between two renewals the error of the tick rate, some parts in a million, adds up to less than 0.1 us.
constexpr uint64_t kMaxAgeMs = 20;
constexpr uint64_t kQuickReadsPerMs = 1000;  // A read(2) that takes less than 1 us was not interrupted.

// Returns true if malloc, realloc and new each increase the count `word`: a program, or a sanitizer, may replace any.
// The calls are made through volatile pointers, because otherwise the compiler drops them.
bool CountsAllocation(const uint64_t* word) {
  void* (*volatile allocate)(size_t) = ::malloc;
  void* (*volatile reallocate)(void*, size_t) = ::realloc;
  void* (*volatile allocate_new)(size_t) = ::operator new;
  const uint64_t before = *word;
  ::free(reallocate(allocate(1), 1));
  const uint64_t between = *word;
  ::operator delete(allocate_new(1));
  return between == before + 2 && *word != between;
}

bool IsInline(ReadPath path) { return path == ReadPath::kRing || path == ReadPath::kThreadClock; }

}  // namespace

SourceBuilder::SourceBuilder(Groups groups, const Target& target, const CounterOptions& options, uint32_t banned,
                             std::optional<bool> migrations_by_records)
    : groups_(groups),
      target_(target),
      options_(options),
      banned_(banned),
      source_(std::make_unique<Source>(target, options)) {
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (const EventConfig& event : groups_[g]) {
      source_->slots_.emplace_back().event = event;
      written_in_.push_back(g);
      if (IsSoftware(event, sys::kSwCpuMigrations)) {
        if (!migrations_by_records) migrations_by_records = options.user_only || !rights_.get().may_count_kernel();
        detailed_switches_ = *migrations_by_records;
      }
      can_multiplex_ = can_multiplex_ || CanMultiplex(event);
    }
  }
  for (size_t i = 0; i < source_->slots_.size(); ++i) {
    const size_t first = FirstLike(i);
    if (first != i) {
      source_->copies_.push_back({static_cast<uint8_t>(first), static_cast<uint8_t>(i)});
    } else if (IsSoftware(event(i), sys::kSwTaskClock) && CountsThreads()) {
      clock_slot_ = i;
    }
  }
  ChooseFormat();
  if (IsThisThread()) source_->plan_.owner = ThreadSerial();
  source_->plan_.cpu = sys::CurrentCpuWord();
}

// Returns the first event that has the same number as event `i`, usually itself. Two groups may be on shared counters
// at different times, so an event of one group cannot replace the same event in another. A program gets as many
// hardware counters as it asks for, as with perf, because programs test their counters by that.
size_t SourceBuilder::FirstLike(size_t i) const {
  if (CanMultiplex(event(i))) return i;
  const auto alone = [&](size_t k) { return groups_[written_in_[k]].size() == 1; };
  size_t first = 0;
  const auto same = [&](size_t k) {
    const bool together = !can_multiplex_ || written_in_[k] == written_in_[i] || (alone(k) && alone(i));
    return together && CountTheSame(event(k), event(i));
  };
  while (first < i && !same(first)) ++first;
  return first;
}

// The kernel copies the events of a thread for each thread that it starts. Groups are not safe then: while a copy is
// made or ends, a read fails (ECHILD) or lacks its siblings, and a member that is added just then may be lost for good
// (seen on Linux 6.18). So events that are never off their counter are groups of their own.
bool SourceBuilder::OpensApart() const { return target_.inherit && CountsThreads() && !IsThisThread(); }

// Must be called before anything is opened: a group's members must agree on the format.
void SourceBuilder::ChooseFormat() {
  const size_t size = source_->slots_.size() - source_->copies_.size();
  if (size == 1) clock_slot_ = kNoSlot;
  const bool clock = clock_slot_ != kNoSlot;
  format_.alone = (OpensApart() && !can_multiplex_) || size - (clock ? 1 : 0) <= 1;
  // For CPUs, the times also show whether they are still counted (PerfGroup::HasEnded).
  if (!can_multiplex_ && CountsThreads())
    format_.times = clock ? GroupFormat::Times::kEnabled : GroupFormat::Times::kNone;
}

absl::StatusOr<std::unique_ptr<Source>> SourceBuilder::Build() {
  size_t i = 0;
  for (const std::vector<EventConfig>& group : groups_) {
    if (group.size() > 1) open_groups_.clear();
    for (size_t k = 0; k < group.size(); ++k, ++i) {
      if (i == clock_slot_ || FirstLike(i) != i) continue;
      if (absl::Status status = Assign(i, group.size() > 1 && !group[0].weak_group); !status.ok()) return status;
    }
    if (group.size() > 1) open_groups_.clear();
  }
  if (clock_slot_ != kNoSlot) {  // Last: if there is a group, it needs no event of its own.
    if (absl::Status status = Assign(clock_slot_, false); !status.ok()) return status;
  }
  for (PerfGroup& group : source_->groups_.all()) {
    if (OpensApart()) group.ExpectEndingThreads();
    if (target_.enable_on_exec) continue;  // Disabled until then, and complete when it starts.
    if (absl::Status status = group.Settle(); !status.ok()) return status;
  }
  source_->groups_.BeginTimes();
  MapEpochPage();
  ForgetTimesOfItsOwn();
  FinishCopies();
  Summarise();
  AllowReadInPlace();
  return std::move(source_);
}

// Tries the paths in order. Of several failures, keeps the reason of the first, which is that of the best path. Returns
// an error only if the set has to be complete.
absl::Status SourceBuilder::Assign(size_t i, bool strict_group) {
  absl::Status reason = CheckModifiers(event(i));
  if (reason.ok()) {
    // The reason if only_path names a path that the event does not have.
    reason = NoSuchPath(i, options_.only_path.value_or(ReadPath::kGroupRead));
    bool tried = false;
    for (const ReadPath path : PathsFor(event(i), target_)) {
      if (options_.only_path && path != *options_.only_path) continue;
      if (IsInline(path) && (banned_ >> i & 1) != 0) continue;
      // The detailed records of switches tell migrations, which then need no ring of their own.
      if (path == ReadPath::kRing && detailed_switches_ && IsSoftware(event(i), sys::kSwCpuMigrations)) continue;
      slot(i).path = path;  // Try may still change it to a more expensive one.
      const absl::Status status = Try(path, i, strict_group);
      if (status.ok()) return status;
      if (!std::exchange(tried, true)) reason = status;
    }
  }
  slot(i).reason = reason;
  slot(i).fixed_flags.flags = Validity::kNotCounted;
  source_->plan_.epoch.missing |= 1u << i;
  return options_.require_all ? reason : absl::OkStatus();
}

absl::Status SourceBuilder::Try(ReadPath path, size_t i, bool strict_group) {
  switch (path) {
    case ReadPath::kUserPage: return OpenUserPage(i, strict_group);
    case ReadPath::kRing: return OpenRing(i);
    case ReadPath::kThreadClock: return IsSoftware(event(i), sys::kSwTaskClock) ? OpenClock(i) : OpenMigrations(i);
    case ReadPath::kGroupRead: return OpenInGroup(i, strict_group);
    case ReadPath::kUsage: return OpenUsage(i);
    case ReadPath::kWrappedMalloc: return OpenWrappedMalloc(i);
    case ReadPath::kThreadIo: return OpenThreadIo(i);
  }
  return absl::InternalError("no such path");
}

open::OpenRequest SourceBuilder::RequestFor(size_t i) const {
  const EventConfig& wanted = event(i);
  open::OpenRequest request = open::RequestFor(wanted, 0);
  // Modifiers of the event itself win over the option.
  if (options_.user_only && request.may_restrict_to_user) request.attr.exclude_kernel = request.attr.exclude_hv = 1;
  request.asked = Asked(i);
  return request;
}

// Uses the page of a software event that is never off its counter: the kernel changes its lock at each switch of the
// thread. The locks of tracepoints, breakpoints, probes and PMUs outside of the CPU never change, and that of a
// hardware event does not change while the event waits for a counter.
void SourceBuilder::UsePage(const UserPage* page) {
  if (source_->plan_.page != nullptr && !source_->epoch_event_) return;
  source_->plan_.page = page;
  source_->epoch_event_.reset();
}

// Provides a page for events whose own page does not show epochs: that of an event that counts nothing, until another
// event brings a page.
absl::Status SourceBuilder::NeedEpochPage() {
  if (source_->plan_.page != nullptr) return absl::OkStatus();
  const open::OpenRequest request = open::RequestForNothing("an event that tells when this thread is switched");
  absl::StatusOr<open::LiveRing> event = open::LiveRing::Open(request, 0, rights_);
  if (!event.ok()) return event.status();
  source_->epoch_event_ = *std::move(event);
  source_->plan_.page = source_->epoch_event_->page();
  return absl::OkStatus();
}

absl::Status SourceBuilder::OpenClock(size_t i) {
  if (source_->base_.clock()) return absl::InvalidArgumentError(Asked(i) + ": it is in the set already");
  const bool has_switch_ring = clock_has_switch_ring_ && i == clock_slot_;
  std::optional<open::LiveRing> opened;
  if (!has_switch_ring) {
    absl::StatusOr<open::LiveRing> clock = open::LiveRing::Open(ClockRequest(i), 0, rights_);
    if (!clock.ok()) return clock.status();
    opened = *std::move(clock);
  }
  const TickRate rate = TickRateOf(*(opened ? &*opened : source_->base_.switch_ring())->page());
  if (rate.ns_per_tick_q32 == 0) return absl::UnavailableError("this machine has no tick counter for user space");
  detail::ReadPlan& plan = source_->plan_;
  plan.ns_per_tick_q32 = rate.ns_per_tick_q32;
  plan.max_age_ticks = rate.ticks_per_ms * kMaxAgeMs;
  plan.clock_index = static_cast<uint8_t>(i);
  const uint64_t quick_read_ticks = rate.ticks_per_ms / kQuickReadsPerMs;
  source_->base_.SetClock(opened ? AddInline(*std::move(opened)) : *source_->base_.switch_ring(), quick_read_ticks);
  plan.page = source_->base_.clock()->page();
  return absl::OkStatus();
}

// Returns true if the set's task-clock, which is opened last, will be read as the thread's clock: then its event may
// write the records of switches, and the set has one event less to be switched with its thread.
bool SourceBuilder::ClockCarriesSwitches() const {
  if (clock_slot_ == kNoSlot || (banned_ >> clock_slot_ & 1) != 0) return false;
  if (options_.only_path.value_or(ReadPath::kThreadClock) != ReadPath::kThreadClock) return false;
  const std::span<const ReadPath> paths = PathsFor(event(clock_slot_), target_);
  return !paths.empty() && paths[0] == ReadPath::kThreadClock && CheckModifiers(event(clock_slot_)).ok();
}

absl::Status SourceBuilder::NeedSwitchRing() {
  if (source_->base_.switch_ring()) return absl::OkStatus();
  const auto open_ring = [&] {
    return clock_has_switch_ring_ ? OpenWithSwitchRing(ClockRequest(clock_slot_), detailed_switches_, rights_)
                                  : OpenSwitchRing(detailed_switches_, rights_, leader_fd_);
  };
  clock_has_switch_ring_ = ClockCarriesSwitches();
  absl::StatusOr<open::LiveRing> ring = open_ring();
  if (!ring.ok() && std::exchange(clock_has_switch_ring_, false)) ring = open_ring();
  if (!ring.ok()) return ring.status();
  source_->base_.SetSwitchRing(AddInline(*std::move(ring)),
                               detailed_switches_ ? kDetailedSwitchShift : kBareSwitchShift);
  UsePage(source_->base_.switch_ring()->page());
  return absl::OkStatus();
}

absl::Status SourceBuilder::OpenMigrations(size_t i) {
  if (!detailed_switches_) return NoSuchPath(i, ReadPath::kThreadClock);
  if (source_->plan_.migration_index < kMaxEvents) {  // Requested under another name: there is one such number.
    source_->copies_.push_back({source_->plan_.migration_index, static_cast<uint8_t>(i)});
    return absl::OkStatus();
  }
  if (absl::Status status = NeedSwitchRing(); !status.ok()) return status;
  source_->base_.StartMigrations(*source_->plan_.cpu);
  source_->plan_.migration_index = static_cast<uint8_t>(i);
  return absl::OkStatus();
}

absl::Status SourceBuilder::OpenRing(size_t i) {
  if (RingKindOf(event(i)) == RingKind::kPeriodOne) return OpenPeriodOne(i);
  const absl::Status status = NeedSwitchRing();
  if (status.ok()) source_->plan_.switch_mask |= 1u << i;
  return status;
}

absl::Status SourceBuilder::OpenPeriodOne(size_t i) {
  const bool tells_epochs = event(i).parts[0].type == sys::kTypeSoftware;  // Tracepoints and probes have other PMUs.
  if (!tells_epochs) {
    if (absl::Status status = NeedEpochPage(); !status.ok()) return status;
  }
  open::OpenRequest request = RequestFor(i);
  if (tells_epochs) request.group_fd = leader_fd_;
  request.attr.sample_period_or_freq = 1;
  request.attr.sample_type = sys::kSampleRead;
  request.attr.write_backward = 1;
  request.attr.watermark = 1;
  request.attr.wakeup_events_or_watermark = ~0u;  // No wake-ups: no reader polls.
  absl::StatusOr<open::LiveRing> opened = open::LiveRing::Open(request, 1, rights_);
  if (!opened.ok()) return opened.status();
  const open::LiveRing& ring = AddInline(*std::move(opened), tells_epochs);
  if (ring.user_only() || request.attr.exclude_kernel != 0) slot(i).fixed_flags.flags |= Validity::kUserOnly;
  if (tells_epochs) UsePage(ring.page());
  detail::ReadPlan& plan = source_->plan_;
  const auto mask = static_cast<uint32_t>(ring.data().size() - 1);
  // cpu-migrations is raised as a thread that was moved is switched in (perf_event_task_sched_in, Linux 6.18).
  const bool by_switches = IsSoftware(event(i), sys::kSwCpuMigrations);
  const size_t r = by_switches ? kMaxEvents - ++plan.epoch_ring_count : plan.ring_count++;
  plan.rings[r] = {{&ring.page()->data_head, ring.data().data(), mask}, static_cast<uint8_t>(i)};
  return absl::OkStatus();
}

absl::Status SourceBuilder::OpenUsage(size_t i) {
  const std::optional<UsageField> field = UsageFieldFor(event(i).parts[0].config);
  Usage usage;
  if (!field || !usage.Read(BitOf(*field))) return NoSuchPath(i, ReadPath::kUsage);
  // getrusage counts user and kernel together, so it cannot replace one half.
  const bool given = event(i).privilege_given;
  const bool one_half =
      given ? event(i).exclude_kernel != event(i).exclude_user : options_.user_only && CanBeUserOnly(event(i));
  if (one_half) return NoSuchPath(i, ReadPath::kUsage);
  slot(i).usage_field = *field;
  source_->usage_mask_ |= 1u << i;
  source_->usage_fields_ |= BitOf(*field);
  return absl::OkStatus();
}

// Returns an error for another target than this thread: an event without perf is counted by the thread itself.
absl::Status SourceBuilder::CheckOwnThread(size_t i) const {
  if (IsThisThread() && !target_.enable_on_exec) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: it is counted without perf, for the thread that opens the set alone. Remedy: open a set on "
                      "each thread (Target::ThisThread, ThreadSlots, FrameCounter).",
                      Asked(i)));
}

absl::Status SourceBuilder::OpenWrappedMalloc(size_t i) {
  if (absl::Status own = CheckOwnThread(i); !own.ok()) return own;
  const bool bytes = event(i).parts[0].config == event::kAllocatedBytes.config;
  const uint64_t* const word = bytes ? sys::ThreadAllocatedBytes() : sys::ThreadAllocations();
  if (word == nullptr) {
    return absl::UnavailableError(absl::StrFormat(
        "%s: this program does not link perfkit::testing_alloc. Remedy: link perfkit::testing_alloc, or "
        "preload libperfkit_malloc_preload.so.",
        Asked(i)));
  }
  if (!CountsAllocation(word)) {
    return absl::UnavailableError(
        absl::StrFormat("%s: another malloc or operator new than those of perfkit::testing_alloc and the C++ library "
                        "is in force. Remedy: link none that replaces them, such as jemalloc.",
                        Asked(i)));
  }
  detail::ReadPlan& plan = source_->plan_;
  plan.words[plan.word_count++] = {word, static_cast<uint8_t>(i)};
  return absl::OkStatus();
}

absl::Status SourceBuilder::OpenThreadIo(size_t i) {
  if (absl::Status own = CheckOwnThread(i); !own.ok()) return own;
  return source_->io_.Add(i, event(i).parts[0].config == event::kReadBytes.config, Asked(i));
}

// Returns the descriptor of a member of the first group whose page shows epochs; -1 if none does.
int SourceBuilder::FdWithEpochs() const {
  if (can_multiplex_ || source_->groups_.empty()) return -1;
  const PerfGroup& group = source_->groups_.all().front();
  for (size_t m = 0; m < group.members().size(); ++m) {
    if (event(group.members()[m]).parts[0].type == sys::kTypeSoftware) return group.fd(m);
  }
  return -1;
}

// Maps the page of a group's member in a set without events that bring a page: it shows whether the thread was
// switched. If no page can be mapped, the numbers are the same, but each has the flag that it may have been switched.
void SourceBuilder::MapEpochPage() {
  if (source_->plan_.page != nullptr || !IsThisThread()) return;
  if (source_->groups_.empty() && !source_->HasInlinePart() && source_->io_.empty()) return;
  const int fd = FdWithEpochs();
  std::optional<sys::Mapping> page;
  if (fd >= 0) page = sys::Mapping::ReadOnly(fd, sys::PageSize());
  if (page) {
    UsePage(reinterpret_cast<const UserPage*>(page->data()));
    source_->user_pages_.push_back(*std::move(page));
  } else if (fd < 0) {
    NeedEpochPage().IgnoreError();
  }
}

// Without a hardware event beside it, because none could be opened, an event is never off its counter.
void SourceBuilder::ForgetTimesOfItsOwn() {
  uint32_t shared = 0;
  for (const PerfGroup& group : source_->groups_.all()) {
    const bool any = std::ranges::any_of(group.members(), [this](size_t i) { return CanMultiplex(event(i)); });
    for (const size_t i : group.members()) shared |= any ? 1u << i : 0;
  }
  source_->multiplexable_ &= shared;
}

// Gives each copy the properties of its original.
void SourceBuilder::FinishCopies() {
  std::ranges::sort(source_->copies_, {}, &Source::Copy::to);  // A copy of a copy comes after its original.
  for (const auto& [from, to] : source_->copies_) {
    const EventConfig as_written = event(to);
    slot(to) = slot(from);
    slot(to).event = as_written;
    source_->multiplexable_ |= (source_->multiplexable_ >> from & 1) << to;
    source_->plan_.epoch.missing |= (source_->plan_.epoch.missing >> from & 1) << to;
  }
}

void SourceBuilder::Summarise() {
  detail::ReadPlan& plan = source_->plan_;
  const size_t size = source_->slots_.size();
  if (plan.has_epoch_values()) plan.epoch_values = static_cast<uint8_t>(size);
  // The slow path makes copies, even if it needs no system call.
  const bool all_inline = plan.page != nullptr && source_->copies_.empty() && source_->usage_mask_ == 0 &&
                          (source_->groups_.grouped() & ~source_->user_page_mask_) == 0 && source_->io_.empty();
  const bool plain = size <= plan.kPlainEvents && plan.word_count == 0 && plan.user_page_count == 0;
  if (all_inline) plan.inline_read = plain ? detail::InlineRead::kPlain : detail::InlineRead::kGeneral;
}

}  // namespace perfkit::count
