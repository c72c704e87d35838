// Reading counters: counts, their validity, and the half of CounterSet that never fails.
//
// This header is cheap to include and is all that a hot path needs. counter.h adds Open, which can fail.
//
//   caller ── CounterReader::Read(Snapshot&)
//               ├─ if no event needs a system call: ReadFast: loads, and one read of the tick counter
//               └─ else: ReadSlow, in src/count/source.cc, which calls the kernel
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "perfkit/enable.h"
#if PERFKIT_ENABLE
#include "perfkit/detail/user_page.h"
#endif

namespace PERFKIT_NAMESPACE {

namespace count {
class Source;     // src/count/source.h: the descriptors, mappings and groups of a set
class EventPlan;  // src/count/frame/event_plan.h: opens the same events on several threads
}  // namespace count

// Maximum number of events in a CounterSet.
inline constexpr size_t kMaxEvents = 16;

// How an event is read. CounterSet::Open chooses the cheapest path that a test shows to be correct.
enum class ReadPath : uint8_t {
  kUserPage,       // A counter register, read in user space (rdpmc, mrs).
  kRing,           // A ring with a record for each occurrence: the newest sample has the count; switches are counted.
  kThreadClock,    // task-clock: extrapolated by the tick counter. cpu-migrations: from SWITCH records.
  kGroupRead,      // read(2) of a perf group.
  kUsage,          // getrusage, if perf is not permitted.
  kWrappedMalloc,  // A word of the thread, which the malloc of perfkit::testing_alloc increases at each call.
  kThreadIo,       // pread(2) of /proc/thread-self/io.
};
// Returns "user page", "ring", ….
std::string_view ReadPathName(ReadPath path);

// The validity of a count: a set of flags. kNotCounted and kOtherThread each exclude all others.
struct Validity {
  enum Flag : uint8_t {
    kNotCounted = 1,    // No count: `value` is meaningless. CounterSet::reason(i) says why.
    kSwitched = 2,      // The thread may have been off its CPU in between.
    kMigrated = 4,      // The region ended on another CPU than it began on. Needs rseq (glibc 2.35).
    kMultiplexed = 8,   // On the PMU for a part of the time only: coverage().
    kUserOnly = 16,     // Without the kernel's work for the thread.
    kFallback = 32,     // Read by a slower path than the chosen one.
    kOtherThread = 64,  // Began or ended on another thread than the counted one: no count.
    kSomeCpus = 128,  // Counts on one kind of core only; the thread's work on others is neither included nor estimated.
  };
  uint8_t flags = 0;

  constexpr bool has(Flag flag) const { return (flags & flag) != 0; }
  constexpr bool counted() const { return (flags & (kNotCounted | kOtherThread)) == 0; }
  constexpr Validity operator|(Validity other) const { return {static_cast<uint8_t>(flags | other.flags)}; }
  friend constexpr bool operator==(Validity, Validity) = default;
};

// How a set counts an event, as far as it decides whether the counts of several sets may be added: flags. Each count
// has either kTimed or kUntimed, and a time of the thread either kPerfClock or kUsageClock.
struct CountKind {
  enum Flag : uint8_t {
    kUserOnly = 1,     // Validity::kUserOnly.
    kSomeCpus = 2,     // Validity::kSomeCpus.
    kTimed = 4,        // Multiplexable: has times of its own in a snapshot.
    kUntimed = 8,      // Never multiplexed.
    kPerfClock = 16,   // A time of the thread by perf, with what a hypervisor took from it meanwhile.
    kUsageClock = 32,  // A time of the thread by getrusage, without that.
  };
  uint8_t flags = 0;

  constexpr bool has(Flag flag) const { return (flags & flag) != 0; }
  // Returns true if these are the kinds of several sets whose sum has no meaning.
  constexpr bool mixed() const { return (has(kTimed) && has(kUntimed)) || (has(kPerfClock) && has(kUsageClock)); }
  friend constexpr bool operator==(CountKind, CountKind) = default;
};

// A count with its validity. `value` is in events; for clock events in nanoseconds. time_enabled_ns is how long the
// event was enabled, time_running_ns how long it was on the PMU. Both are 0 unless CounterReader::multiplexable() has
// the event. It never has software events and tracepoints, except some that are read with ReadPath::kGroupRead together
// with events that may be multiplexed.
struct Count {
  uint64_t value = 0;
  uint64_t time_enabled_ns = 0;
  uint64_t time_running_ns = 0;
  Validity validity{Validity::kNotCounted};

  // Returns the part of the time in which the event was on the PMU, from 0 to 1; 0 if not counted.
  constexpr double coverage() const {
    if (!validity.counted()) return 0;
    if (time_running_ns >= time_enabled_ns) return 1;
    return static_cast<double>(time_running_ns) / static_cast<double>(time_enabled_ns);
  }
  // Returns the estimate for the whole time: value * time_enabled_ns / time_running_ns, in 128 bits. Equal to `value`
  // at full coverage. Returns nullopt if the event was not counted, never ran, or counts on some CPUs only and the
  // thread was not always on those.
  std::optional<uint64_t> scaled() const;
};

// All counts of a set at one moment. Only differences of two snapshots of the same set are meaningful:
// CounterReader::Difference. `values` is by event, in the set's order; elements beyond the set's size are unspecified,
// and so are those of events whose bit in `missing` is set. Not initialised, for speed: Read fills it. Members that
// each read uses come first, so that they share a cache line with the first four values.
struct Snapshot {
  struct Times {
    uint64_t enabled_ns, running_ns;
  };
  uint64_t ticks;       // ReadTicks() at the read if a clock needed it, else 0.
  uint32_t epoch;       // The user page's lock: equal epochs mean no context switch in between.
  uint32_t cpu;         // The thread's CPU; kNoCpu if unknown.
  uint32_t missing;     // Bit i < kMaxEvents: event i has no count here. Higher bits: detail::kGapShift.
  uint32_t fallback;    // Bit i: event i was read by a slower path than its own.
  bool other_thread;    // Target::ThisThread: not read on that thread. Always false for other targets.
  uint64_t group_size;  // Written by the kernel before the values, so that a group is read in place.
  std::array<uint64_t, kMaxEvents> values;
  std::array<Times, kMaxEvents> times;  // By event; unspecified for events that are not multiplexable.

  static constexpr uint32_t kNoCpu = ~0u;
};

// Returns a Count from the difference of two snapshots, or from a sum of differences. Adds kMultiplexed if the event
// was on the PMU for a part of the time; returns kNotCounted if it was enabled but never on the PMU.
inline Count MakeCount(uint64_t value, Snapshot::Times times, Validity validity) {
  if (validity.has(Validity::kNotCounted)) return {.validity = {Validity::kNotCounted}};
  if (validity.has(Validity::kOtherThread)) return {.validity = {Validity::kOtherThread}};
  // Enabled, but never on the PMU: not counted, which is not the same as 0.
  if (times.enabled_ns > 0 && times.running_ns == 0) return {.validity = {Validity::kNotCounted}};
  if (times.running_ns < times.enabled_ns) validity.flags |= Validity::kMultiplexed;
  return {value, times.enabled_ns, times.running_ns, validity};
}

#if PERFKIT_ENABLE
namespace detail {

// The value of ThreadSerial(); 0 until the thread first calls it. Initial-exec: one load, also from a library.
extern constinit thread_local uint64_t thread_serial __attribute__((tls_model("initial-exec")));
uint64_t AssignThreadSerial() noexcept;

// Bits of Snapshot::missing from kGapShift on: the number of gaps so far in the events that are counted from records. A
// gap is a loss of records. At kMaxGaps, later gaps are not known.
inline constexpr unsigned kGapShift = kMaxEvents;
inline constexpr uint32_t kMissingMask = (uint32_t{1} << kGapShift) - 1;
inline constexpr uint32_t kMaxGaps = ~uint32_t{0} >> kGapShift;

// CounterReader::MissingBetween, from Snapshot::missing at both ends. Bit i of `gapped`: event i is counted from
// records.
inline uint32_t MissingBetween(uint32_t begin, uint32_t end, uint32_t gapped) noexcept {
  const uint32_t missing = begin | end;
  if (missing <= kMissingMask) [[likely]]
    return missing;
  const uint32_t gaps = end >> kGapShift;
  const bool no_gap = begin >> kGapShift == gaps && gaps != kMaxGaps;
  return (no_gap ? missing & ~gapped : missing) & kMissingMask;
}

// The thread's clock at a known tick. Only the owner thread rewrites it, and ReadPlan::epoch with it. `version` is odd
// meanwhile, so that a signal handler on the same thread, which may read the set too, never uses half of them.
struct ClockBase {
  uint32_t version = 0;
  uint64_t ticks = 0;
  uint64_t time_ns = 0;
};

// How a set is read without the kernel. kPlain: it has at most ReadPlan::kPlainEvents events, without words and counter
// registers. kGeneral: any other set whose events all can be read inline.
enum class InlineRead : uint8_t { kNone, kPlain, kGeneral };

// The data of inline reads. Its address does not change. Owned by a CounterSet. In a forked child `owner` becomes
// kNobody, and no pointer is followed any more.
struct ReadPlan {
  static constexpr uint64_t kNobody = ~uint64_t{0};  // No inline read of this set, or not any more.

  uint64_t owner = kNobody;        // ThreadSerial() of the counted thread.
  const UserPage* page = nullptr;  // Its lock distinguishes epochs.
  ClockBase base;
  // The parts of a snapshot that change only when the thread is switched, in its layout: each read copies them.
  struct Epoch {
    uint32_t lock = 1;  // The page's lock under which this, and the base, hold. Its own thread reads no odd one.
    uint32_t cpu = Snapshot::kNoCpu;
    uint32_t missing = 0;                       // Bit i: event i has no count.
    uint32_t fallback = 0;                      // Always 0: copied with the others.
    std::array<uint64_t, kMaxEvents> values{};  // Of the events that count switches and migrations.
  };
  Epoch epoch;
  static constexpr size_t kPlainEvents = 4;
  InlineRead inline_read = InlineRead::kNone;
  uint8_t epoch_values = 0;  // Number of values to copy from `epoch` if the set is not plain.
  uint8_t word_count = 0, ring_count = 0, epoch_ring_count = 0, user_page_count = 0;
  uint8_t clock_index = kMaxEvents;  // The event that is the thread's clock; kMaxEvents means none.
  // Maximum age of the base, in ticks; bounds the error caused by drift of the tick rate.
  uint64_t max_age_ticks = 0;
  uint64_t ns_per_tick_q32 = 0;  // Nanoseconds per tick, in 2^-32.
  uint64_t last_time_ns = 0;     // The last clock value that was returned: a new base never goes below it.
  // Words that this thread itself counts in.
  struct Word {
    const uint64_t* at;
    uint8_t index;
  };
  std::array<Word, kMaxEvents> words{};
  struct Ring {
    BackwardRing ring;
    uint8_t index;
  };
  // `ring_count` at the front, for each read. `epoch_ring_count` at the back: only a switch raises their events, so
  // they are read once an epoch.
  std::array<Ring, kMaxEvents> rings{};
  struct Counter {
    const UserPage* page;
    uint8_t index;
  };
  std::array<Counter, kMaxEvents> user_pages{};
  const uint32_t* cpu = nullptr;         // The thread's rseq cpu_id, or a word with the value kNoCpu.
  uint32_t switch_mask = 0;              // Bit i: event i is the number of switch records.
  uint8_t migration_index = kMaxEvents;  // The event that is counted from switch records; kMaxEvents means none.

  bool has_epoch_values() const { return switch_mask != 0 || epoch_ring_count != 0 || migration_index < kMaxEvents; }
};
static_assert(offsetof(Snapshot, cpu) - offsetof(Snapshot, epoch) == offsetof(ReadPlan::Epoch, cpu));
static_assert(offsetof(Snapshot, missing) - offsetof(Snapshot, epoch) == offsetof(ReadPlan::Epoch, missing));
static_assert(offsetof(Snapshot, fallback) - offsetof(Snapshot, epoch) == offsetof(ReadPlan::Epoch, fallback));

}  // namespace detail

// Returns a number that no other thread of this process has or had. (The address of a thread's control block is not
// unique: a later thread may reuse it.)
inline uint64_t ThreadSerial() noexcept {
  return detail::thread_serial != 0 ? detail::thread_serial : detail::AssignThreadSerial();
}

// The reading half of a CounterSet. With Target::ThisThread it is for the thread that the set counts: Read is
// async-signal-safe there, and on another thread it sets Snapshot::other_thread. With other targets any thread may call
// it, one at a time. A copy is valid as long as its CounterSet, also after a move of the set; a reader without a set
// reads as missing.
class CounterReader {
 public:
  CounterReader() = default;

  // Reads all events into `now`. Never fails, allocates, locks or throws; `now.missing` has the events without a count.
  [[gnu::always_inline]] void Read(Snapshot& now) const noexcept {
    if (!(plan_ != nullptr && ReadFast(*plan_, now))) [[unlikely]]
      ReadSlow(now);
  }

  // Returns the number of events.
  size_t size() const noexcept { return size_; }

  // Returns what event `i` counted from `begin` to `end`, two snapshots of this set, with its validity. kNotCounted if
  // i >= size().
  Count Difference(const Snapshot& begin, const Snapshot& end, size_t i) const noexcept;

  // Returns the flags that all counts of [begin, end] share: kSwitched, kMigrated, kOtherThread.
  static Validity SharedValidity(const Snapshot& begin, const Snapshot& end) noexcept {
    uint8_t flags = begin.epoch == end.epoch ? 0 : Validity::kSwitched;
    if (begin.cpu != end.cpu) flags |= Validity::kMigrated;
    if (begin.other_thread || end.other_thread) flags |= Validity::kOtherThread;
    return {flags};
  }

  // Returns a mask; bit i: event i has no count between `begin` and `end`. An event that is counted from records is
  // missing in all snapshots after its first gap (lost records), but has a count between two snapshots if no gap lies
  // between them.
  uint32_t MissingBetween(const Snapshot& begin, const Snapshot& end) const noexcept {
    return detail::MissingBetween(begin.missing, end.missing, gapped_);
  }

  // Returns a mask; bit i: event i is counted from records, and may have gaps (MissingBetween).
  uint32_t gapped() const noexcept { return gapped_; }

  // Returns a mask; bit i: event i is multiplexable, and has times of its own in a snapshot.
  uint32_t multiplexable() const noexcept { return multiplexable_; }

  // Returns what kind of number each event has, for sums over several sets.
  const std::array<CountKind, kMaxEvents>& kinds() const noexcept { return kinds_; }

  // Returns the flags that each count of event `i` has: kUserOnly, kSomeCpus, kNotCounted.
  Validity fixed_flags(size_t i) const noexcept {
    return i < size_ ? fixed_flags_[i] : Validity{Validity::kNotCounted};
  }

 protected:
  // Reads a set that needs no system call. Returns false, with `now` unspecified, if ReadSlow is needed: the set needs
  // one, the base has to be renewed, this is not the counted thread, a counter is in no register now, or the thread was
  // switched meanwhile.
  static bool ReadFast(detail::ReadPlan& plan, Snapshot& now) noexcept {
    if (plan.inline_read == detail::InlineRead::kPlain) [[likely]]
      return ReadInline<true>(plan, now);
    return plan.inline_read != detail::InlineRead::kNone && ReadInlineEvents(plan, now);
  }
  // Reads those events of any set that need no system call. Returns false as ReadFast. Out of line, so that reads of
  // plain sets save no registers.
  [[gnu::noinline, gnu::flatten]] static bool ReadInlineEvents(detail::ReadPlan& plan, Snapshot& now) noexcept {
    return ReadInline<false>(plan, now);
  }
  template <bool kPlain>
  static bool ReadInline(detail::ReadPlan& plan, Snapshot& now) noexcept;

  void ReadSlow(Snapshot& now) const noexcept;

  detail::ReadPlan* plan_ = nullptr;
  count::Source* source_ = nullptr;  // The argument of ReadSlow.
  size_t size_ = 0;
  uint32_t multiplexable_ = 0;
  uint32_t gapped_ = 0;
  std::array<CountKind, kMaxEvents> kinds_{};
  std::array<Validity, kMaxEvents> fixed_flags_{};
};

namespace detail {

// Reads the counters in registers. Returns false if one of them is not in a register now.
inline bool ReadUserPages(const ReadPlan& plan, Snapshot& now) noexcept {
  for (size_t u = 0; u < plan.user_page_count; ++u) {
    UserCount count;
    if (!ReadUserCount(*plan.user_pages[u].page, count)) return false;
    const size_t i = plan.user_pages[u].index;
    now.values[i] = count.value;
    now.times[i] = {count.enabled_ns, count.running_ns};
  }
  return true;
}

// Returns true if the base with `version` is whole, and neither a switch nor a renewal of it by a signal handler came
// since `lock` and `version` were loaded. Otherwise the ticks may include time off the CPU.
inline bool IsWhole(const ReadPlan& plan, uint32_t lock, uint32_t version) noexcept {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return LoadShared(plan.page->lock) == lock && plan.base.version == version && (version & 1) == 0;
}

}  // namespace detail

template <bool kPlain>
inline bool CounterReader::ReadInline(detail::ReadPlan& plan, Snapshot& now) noexcept {
  if (detail::thread_serial != plan.owner) [[unlikely]]
    return false;
  const uint32_t version = LoadShared(plan.base.version);  // Before all that it protects.
  const uint32_t lock = LoadShared(plan.page->lock);
  const detail::ReadPlan::Epoch& epoch = plan.epoch;
  if (lock != epoch.lock) [[unlikely]]
    return false;
  // Copies the lock, cpu, missing and fallback at once.
  __builtin_memcpy(reinterpret_cast<std::byte*>(&now) + offsetof(Snapshot, epoch), &epoch,
                   offsetof(detail::ReadPlan::Epoch, values));
  now.other_thread = false;
  // Numbers of elements are loaded first, because the stores of values may alias them.
  if constexpr (kPlain) {
    __builtin_memcpy(now.values.data(), epoch.values.data(), detail::ReadPlan::kPlainEvents * sizeof(uint64_t));
  } else {
    for (size_t i = 0, end = plan.epoch_values; i < end; ++i) now.values[i] = epoch.values[i];
    for (size_t w = 0, end = plan.word_count; w < end; ++w) {
      now.values[plan.words[w].index] = LoadShared(*plan.words[w].at);
    }
  }
  const detail::ReadPlan::Ring* const end = plan.rings.data() + plan.ring_count;
  for (const detail::ReadPlan::Ring* ring = plan.rings.data(); ring != end; ++ring) {
    now.values[ring->index] = ReadNewestCount(ring->ring);
  }
  if (!kPlain && !detail::ReadUserPages(plan, now)) return false;
  now.ticks = 0;
  const size_t clock = plan.clock_index;
  if (clock >= kMaxEvents) return detail::IsWhole(plan, lock, version);
  now.ticks = ReadTicks();
  const uint64_t age = now.ticks - plan.base.ticks;
  if (age > plan.max_age_ticks) [[unlikely]]
    return false;
  const uint64_t time_ns = plan.base.time_ns + TicksToNs(age, plan.ns_per_tick_q32);
  now.values[clock] = time_ns;
  if (!detail::IsWhole(plan, lock, version)) [[unlikely]]
    return false;
  plan.last_time_ns = time_ns;
  return true;
}

inline Count CounterReader::Difference(const Snapshot& begin, const Snapshot& end, size_t i) const noexcept {
  if (i >= size_) return {};
  const bool missing = (MissingBetween(begin, end) >> i & 1) != 0;
  Validity validity = fixed_flags(i) | SharedValidity(begin, end);
  if (((begin.fallback | end.fallback) >> i & 1) != 0) validity.flags |= Validity::kFallback;
  // kOtherThread has priority over "not counted": the events exist, but the region was not on one thread.
  if (missing && !validity.has(Validity::kOtherThread)) return {};
  if (validity.has(Validity::kOtherThread)) return MakeCount(0, {}, validity);
  Snapshot::Times times{};
  if ((multiplexable_ >> i & 1) != 0) {
    times = {end.times[i].enabled_ns - begin.times[i].enabled_ns, end.times[i].running_ns - begin.times[i].running_ns};
  }
  return MakeCount(end.values[i] - begin.values[i], times, validity);
}
#endif

}  // namespace PERFKIT_NAMESPACE

#if !PERFKIT_ENABLE
#include "perfkit/off/count.h"
#endif
