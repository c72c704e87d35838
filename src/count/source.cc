// Reads that need the kernel. If the thread was switched, ReadSlow renews the base of its clock, its CPU, switches and
// migrations; then it reads the groups, getrusage and the thread's io file. A snapshot has an epoch only if all its
// numbers belong to it: the lock of the user page is read before and after. Numbers that the base cannot give are read
// from the kernel one by one, which is correct but slower.
#include "src/count/source.h"

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "absl/strings/str_format.h"
#include "src/sys/read.h"

namespace perfkit::count {
namespace {

// A thread can be switched between two instructions, but not forever. A counter that is not in its register does not
// return by trying again.
constexpr int kInlineTries = 16;
constexpr int kInlineTriesWithCounters = 2;

// Gives the slow path access to CounterReader::ReadInlineEvents.
struct InlineReader : CounterReader {
  using CounterReader::ReadInlineEvents;
};

absl::Status InForkedChild() {
  return absl::FailedPreconditionError("the set belongs to the parent process. Remedy: open one in this process.");
}

}  // namespace

Source::Source(Target target, const CounterOptions& options)
    : target_(target),
      options_(options),
      fork_listener_([](void* self) { static_cast<Source*>(self)->OnForkedChild(); }, this) {
  inline_events_.reserve(kMaxEvents + 2);  // One for each event, for the switch records and for the clock: none moves.
}

// Destroys in the opposite order of construction.
Source::~Source() {
  const sys::ForkBlocker fork_blocker;
  epoch_event_.reset();
  while (!inline_events_.empty()) inline_events_.pop_back();  // Siblings before their leader.
  user_pages_.clear();
  groups_.all().clear();
  io_.Close();
}

void Source::OnForkedChild() noexcept {
  in_forked_child_ = true;
  plan_.owner = detail::ReadPlan::kNobody;
  plan_.page = nullptr;
  plan_.inline_read = detail::InlineRead::kNone;
  for (PerfGroup& group : groups_.all()) group.Close();
  for (open::LiveRing& event : inline_events_) event.OnForkedChild();
  for (sys::Mapping& page : user_pages_) page.Forget();
  io_.Close();
  if (epoch_event_) epoch_event_->OnForkedChild();
}

void Source::ReadSlow(Snapshot& now) noexcept {
  const uint32_t all = (uint32_t{1} << slots_.size()) - 1;
  now.missing = plan_.epoch.missing;
  now.fallback = 0;
  now.ticks = 0;
  now.cpu = Snapshot::kNoCpu;
  now.other_thread = !in_forked_child_ && !IsCountedThread();
  if (in_forked_child_ || now.other_thread) {
    now.epoch = UnknownEpoch();
    now.missing = all;
    return;
  }
  if (plan_.page != nullptr) {
    now.epoch = LoadShared(plan_.page->lock);
    now.cpu = __atomic_load_n(plan_.cpu, __ATOMIC_RELAXED);
    if (HasInlinePart()) ReadInlinePart(now);
  } else {
    now.epoch = UnknownEpoch();  // Without a page, nothing can be proven.
    ReadMapped(now);  // Only those of the wrapped malloc: all other inline numbers are of events that have a page.
  }
  if (!groups_.empty()) groups_.Read(~user_page_mask_ | now.fallback, now);
  if (usage_mask_ != 0) ReadUsage(now);
  if (!io_.empty()) io_.Read(now);
  CopyNumbers(now);
  if (plan_.page == nullptr || LoadShared(plan_.page->lock) == now.epoch) return;
  // The thread was switched meanwhile: the numbers do not belong to one epoch.
  now.epoch = UnknownEpoch();
  now.cpu = __atomic_load_n(plan_.cpu, __ATOMIC_RELAXED);
}

[[gnu::always_inline]] inline bool Source::ReadInPlace(Snapshot& now) const noexcept {
  // With PERF_FORMAT_GROUP the kernel writes the number of members and then the values, which is how group_size and
  // values lie in a Snapshot: nothing is copied.
  static_assert(offsetof(Snapshot, values) == offsetof(Snapshot, group_size) + sizeof(uint64_t));
  if (in_place_.bytes < 0 || detail::thread_serial != plan_.owner) return false;
  now.ticks = 0;
  now.epoch = LoadShared(plan_.page->lock);
  now.cpu = __atomic_load_n(plan_.cpu, __ATOMIC_RELAXED);
  now.missing = 0;
  now.fallback = 0;
  now.other_thread = false;
  now.group_size = in_place_.members;
  void* const where = in_place_.members != 0 ? &now.group_size : now.values.data();
  const ssize_t got = sys::Read(in_place_.fd, where, static_cast<size_t>(in_place_.bytes));
  // Otherwise the thread was switched before the kernel read, and the numbers are not of that epoch.
  const bool same_epoch = LoadShared(plan_.page->lock) == now.epoch;
  return got == in_place_.bytes && now.group_size == in_place_.members && same_epoch;
}

bool Source::IsCountedThread() const noexcept {
  return target_.kind != Target::Kind::kThisThread || ThreadSerial() == plan_.owner;
}

void Source::ReadMapped(Snapshot& now) const noexcept {
  for (size_t w = 0; w < plan_.word_count; ++w) {
    now.values[plan_.words[w].index] = LoadShared(*plan_.words[w].at);
  }
  for (size_t r = 0; r < kMaxEvents; ++r) {
    const bool used = r < plan_.ring_count || r >= kMaxEvents - plan_.epoch_ring_count;
    if (used) now.values[plan_.rings[r].index] = ReadNewestCount(plan_.rings[r].ring);
  }
  for (uint32_t left = plan_.switch_mask; left != 0; left &= left - 1) {
    now.values[static_cast<size_t>(__builtin_ctz(left))] = base_.SwitchesNow();
  }
}

void Source::ReadInlinePart(Snapshot& now) noexcept {
  const int tries = plan_.user_page_count == 0 ? kInlineTries : kInlineTriesWithCounters;
  for (int i = 0; i < tries; ++i) {
    if (InlineReader::ReadInlineEvents(plan_, now)) return;
    // Each turn without success means that the thread was switched between the renewal and the read.
    if (!base_.Renew(plan_, [this] { return gapped(); })) break;
  }
  ReadWithoutBase(now);
}

// Reads each inline number on its own, and from the kernel those that need the base: correct, slower, and flagged.
void Source::ReadWithoutBase(Snapshot& now) noexcept {
  now.missing = plan_.epoch.missing;
  now.ticks = 0;
  now.epoch = LoadShared(plan_.page->lock);
  now.cpu = __atomic_load_n(plan_.cpu, __ATOMIC_RELAXED);
  ReadMapped(now);
  if (plan_.clock_index < kMaxEvents) {
    const uint32_t bit = 1u << plan_.clock_index;
    now.fallback |= bit;
    if (!base_.ReadClock(now.values[plan_.clock_index])) now.missing |= bit;
  }
  if (plan_.migration_index < kMaxEvents) ReadMigrations(now);
  ReadUserPagesOrMarkGroups(now);
}

// If the snapshot does not know of a gap, the numbers are missing: later gaps could not be told from one that only this
// read has found, and a signal handler may have found one after `now.missing` was taken.
void Source::ReadMigrations(Snapshot& now) const noexcept {
  MigrationCounter migrations;
  uint32_t version = 0;
  do {
    version = plan_.base.version;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    migrations = base_.migrations();
    std::atomic_signal_fence(std::memory_order_seq_cst);
  } while (plan_.base.version != version);  // A signal handler has renewed the base.
  const uint32_t known_gaps = now.missing >> detail::kGapShift;
  bool has_gap = migrations.gaps() != known_gaps;
  migrations.Update(*base_.switch_ring());
  has_gap = has_gap || migrations.gaps() != known_gaps;
  now.values[plan_.migration_index] = migrations.migrations();
  now.fallback |= 1u << plan_.migration_index;
  if (has_gap) now.missing |= gapped() | detail::kMaxGaps << detail::kGapShift;
}

// An event whose counter register cannot be read now has its number from the group: ReadSlow looks at `fallback`.
void Source::ReadUserPagesOrMarkGroups(Snapshot& now) const noexcept {
  for (size_t u = 0; u < plan_.user_page_count; ++u) {
    const auto& [page, index] = plan_.user_pages[u];
    UserCount count;
    if (ReadUserCount(*page, count)) {
      now.values[index] = count.value;
      now.times[index] = {count.enabled_ns, count.running_ns};
    } else {
      now.fallback |= 1u << index;
    }
  }
}

void Source::ReadUsage(Snapshot& now) const noexcept {
  Usage usage;
  if (!usage.Read(usage_fields_)) {
    now.missing |= usage_mask_;
    return;
  }
  for (size_t i = 0; i < slots_.size(); ++i) {
    if ((usage_mask_ >> i & 1) != 0) now.values[i] = usage.value(slots_[i].usage_field);
  }
}

void Source::CopyNumbers(Snapshot& now) const noexcept {
  const auto copy_bit = [](uint32_t& bits, const Copy& copy) { bits |= (bits >> copy.from & 1) << copy.to; };
  for (const Copy& copy : copies_) {
    now.values[copy.to] = now.values[copy.from];
    now.times[copy.to] = now.times[copy.from];
    copy_bit(now.missing, copy);
    copy_bit(now.fallback, copy);
  }
}

CountKind Source::KindOf(size_t i) const {
  const Slot& slot = slots_[i];
  int flags = (multiplexable_ >> i & 1) != 0 ? CountKind::kTimed : CountKind::kUntimed;
  if (slot.fixed_flags.has(Validity::kUserOnly)) flags |= CountKind::kUserOnly;
  if (slot.fixed_flags.has(Validity::kSomeCpus)) flags |= CountKind::kSomeCpus;
  if (slot.event.unit == "ns") {
    flags |= slot.path == ReadPath::kUsage ? CountKind::kUsageClock : CountKind::kPerfClock;
  }
  return {static_cast<uint8_t>(flags)};
}

uint32_t Source::gapped() const {
  if (plan_.migration_index >= kMaxEvents) return 0;
  uint32_t events = 1u << plan_.migration_index;
  for (const Copy& copy : copies_) events |= (events >> copy.from & 1) << copy.to;
  return events & ~excluded_;
}

void Source::Exclude(size_t i, absl::Status reason) {
  slots_[i].reason = std::move(reason);
  slots_[i].fixed_flags.flags = Validity::kNotCounted;
  plan_.epoch.missing |= 1u << i;
  excluded_ |= 1u << i;
  in_place_.bytes = -1;  // Such a read has no mask.
}

absl::Status Source::ReasonOf(size_t i) const {
  if (in_forked_child_ && slots_[i].reason.ok()) return InForkedChild();
  const bool may_have_gaps = slots_[i].reason.ok() && (gapped() >> i & 1) != 0;
  if (!may_have_gaps || base_.migrations().gaps() == 0) return slots_[i].reason;
  return absl::DataLossError(absl::StrFormat(
      "event '%s': more switches of this thread came between two reads than the ring of their records holds, which is "
      "%d. Remedy: read more often; what begins after that has a number.",
      slots_[i].event.name, kSwitchesInRing));
}

absl::Status Source::SwitchGroups(unsigned long ioctl_request) {
  if (in_forked_child_) return InForkedChild();
  if (HasInlinePart() || usage_mask_ != 0 || !io_.empty()) {
    return absl::FailedPreconditionError(
        "this set reads some events without perf groups, and those cannot be switched off: take differences of "
        "snapshots, or open it with only_path = ReadPath::kGroupRead");
  }
  for (PerfGroup& group : groups_.all()) {
    if (absl::Status status = group.Switch(ioctl_request); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace perfkit::count

namespace perfkit {
namespace {

// Flattened to be cheap: src/sys/read.h.
[[gnu::flatten, gnu::noinline]] void ReadAny(count::Source* source, Snapshot& now) noexcept {
  if (source != nullptr) return source->ReadSlow(now);
  now.missing = ~0u;
  now.fallback = 0;
  now.ticks = 0;
  now.epoch = 0;
  now.cpu = Snapshot::kNoCpu;
  now.other_thread = false;
}

}  // namespace

// In this file rather than in reader.cc, for the same reason.
void CounterReader::ReadSlow(Snapshot& now) const noexcept {
  if (source_ != nullptr && source_->ReadInPlace(now)) [[likely]]
    return;
  ReadAny(source_, now);
}

}  // namespace perfkit
