// The implementation of CounterSet: its events, each with its path, and the descriptors and mappings that they need.
//
//   Open (source_builder.h)   tries each event's paths from the cheapest on, then tests the inline ones (self_test.h)
//   ReadFast (count.h)        if every event has an inline path, and the thread was not switched since the last base
//   ReadSlow (source.cc)      renews the base, then reads the groups and the usage
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "perfkit/counter.h"
#include "src/count/perf_group.h"
#include "src/count/switch_log.h"
#include "src/count/usage.h"
#include "src/open/live_ring.h"
#include "src/sys/fork_registry.h"

namespace perfkit::count {

class Source {
 public:
  struct Slot {
    EventConfig event;
    ReadPath path = ReadPath::kGroupRead;
    absl::Status reason;   // Not OK: it has no number.
    Validity fixed_flags;  // Flags that each of its numbers has.
    UsageField usage_field{};
  };

  Source(Target target, const CounterOptions& options);
  ~Source();

  // Fills `now` by all means that are needed. Requires the counted thread; a signal handler on it may call this.
  void ReadSlow(Snapshot& now) noexcept;
  // As ReadSlow, for the most common set that needs the kernel: one group of events that cannot multiplex, on this
  // thread. The kernel writes directly into `now`. Returns false, with `now` unspecified, for other sets, and if there
  // was no number.
  bool ReadInPlace(Snapshot& now) const noexcept;

  absl::Status SwitchGroups(unsigned long ioctl_request);

  const std::vector<Slot>& slots() const { return slots_; }
  detail::ReadPlan& plan() { return plan_; }
  // Returns true if any event has a path without a system call.
  bool HasInlinePart() const {
    return plan_.ring_count != 0 || plan_.user_page_count != 0 || plan_.clock_index < kMaxEvents ||
           plan_.migration_index < kMaxEvents;
  }
  uint32_t multiplexable() const { return multiplexable_; }
  // Bit i: event i is counted from switch records, and may have gaps.
  uint32_t gapped() const;
  // Returns why event `i` has no number now; OK if it has one.
  absl::Status ReasonOf(size_t i) const;

 private:
  friend class SourceBuilder;

  bool IsCountedThread() const noexcept;
  void ReadInlinePart(Snapshot& now) noexcept;
  bool RenewBase() noexcept;
  bool ReadClockBase(detail::ClockBase& base) const noexcept;
  void CommitBase(const detail::ClockBase& base, const MigrationCounter& migrations) noexcept;
  bool IsBeingRenewed(uintptr_t here) const noexcept;
  void ReadWithoutBase(Snapshot& now) noexcept;
  void ReadMigrations(Snapshot& now) const noexcept;
  void ReadUserPagesOrMarkGroups(Snapshot& now) const noexcept;
  void ReadGroups(Snapshot& now) noexcept;
  void BeginTimes() noexcept;
  void SettleTimes(Snapshot& now) noexcept;
  void ReadUsage(Snapshot& now) const noexcept;
  void CopyNumbers(Snapshot& now) const noexcept;
  void OnForkedChild() noexcept;

  detail::ReadPlan plan_;
  std::vector<Slot> slots_;
  Target target_;
  CounterOptions options_;
  uint32_t grouped_ = 0;         // Bit i: event i is in a group.
  uint32_t multiplexable_ = 0;   // Of these, those that can multiplex.
  uint32_t split_ = 0;           // Of these, those that a thread has once for each kind of core.
  uint32_t user_page_mask_ = 0;  // Of these, those that are read from their register while they are in one.
  uint32_t usage_mask_ = 0;      // Bit i: event i is read by getrusage.
  // An event that has the number of another one.
  struct Copy {
    uint8_t from, to;
  };
  std::vector<Copy> copies_;
  struct InPlace {
    int fd = -1;
    uint64_t members = 0;  // The word that the kernel writes before the values; 0 means none.
    ssize_t bytes = -1;    // -1 means that reading in place is not possible.
  };
  InPlace in_place_;
  std::array<int64_t, kMaxEvents> missed_ns_{};  // For split events: time on no counter so far.
  uint64_t quick_read_ticks_ = 0;                // A read of the clock within this time was not interrupted.

  std::vector<PerfGroup> groups_;
  std::vector<open::LiveRing> rings_;     // Events of period 1.
  std::vector<sys::Mapping> user_pages_;  // Of events that a group owns.
  std::optional<open::LiveRing> switch_ring_;
  std::optional<open::LiveRing> clock_;
  std::optional<open::LiveRing> epoch_event_;  // Counts nothing: its page has the epochs if no other page has them.
  // The current one and the next one, which comes into force as a whole.
  std::array<MigrationCounter, 2> migrations_;
  uint32_t in_force_ = 0;
  uintptr_t renewer_ =
      0;  // While the version of the base is odd: stack address of an object of the code that changes the base.
  uint32_t unknown_epoch_ = 0;
  bool in_forked_child_ = false;  // True in a forked child.

  sys::ForkListener fork_listener_;  // Declared last: registered only after everything that it releases exists.
};

}  // namespace perfkit::count
