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
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "perfkit/counter.h"
#include "src/count/base_renewer.h"
#include "src/count/group_reads.h"
#include "src/count/thread_io.h"
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
    return plan_.word_count != 0 || plan_.ring_count != 0 || plan_.user_page_count != 0 ||
           plan_.clock_index < kMaxEvents || plan_.has_epoch_values();
  }
  uint32_t multiplexable() const { return multiplexable_; }
  CountKind KindOf(size_t i) const;
  // Bit i: event i is counted from switch records, and may have gaps.
  uint32_t gapped() const;
  // Says why event `i`, a Placeholder, has no number.
  void SetReason(size_t i, absl::Status reason) { slots_[i].reason = std::move(reason); }
  // Takes its number from event `i`, and says why. Requires that nothing was read.
  void Exclude(size_t i, absl::Status reason);
  // Returns why event `i` has no number now; OK if it has one.
  absl::Status ReasonOf(size_t i) const;

 private:
  friend class SourceBuilder;

  bool IsCountedThread() const noexcept;
  // Returns an epoch that differs from all others. Atomic, so that a signal handler that reads in between gets another.
  uint32_t UnknownEpoch() noexcept { return __atomic_sub_fetch(&unknown_epoch_, 1, __ATOMIC_RELAXED); }
  void ReadMapped(Snapshot& now) const noexcept;
  void ReadInlinePart(Snapshot& now) noexcept;
  void ReadWithoutBase(Snapshot& now) noexcept;
  void ReadMigrations(Snapshot& now) const noexcept;
  void ReadUserPagesOrMarkGroups(Snapshot& now) const noexcept;
  void ReadUsage(Snapshot& now) const noexcept;
  void CopyNumbers(Snapshot& now) const noexcept;
  void OnForkedChild() noexcept;

  detail::ReadPlan plan_;
  std::vector<Slot> slots_;
  Target target_;
  CounterOptions options_;
  uint32_t multiplexable_ = 0;    // Bit i: event i is in a group and can multiplex.
  uint32_t user_page_mask_ = 0;   // Bit i: event i is in a group and is read from its register while it is in one.
  uint32_t usage_mask_ = 0;       // Bit i: event i is read by getrusage, or by the CPU clock beside it.
  uint32_t excluded_ = 0;         // Bit i: Exclude was called for event i.
  UsageFields usage_fields_ = 0;  // Of the events in usage_mask_.
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
  GroupReads groups_;
  ThreadIo io_;
  std::vector<sys::Mapping> user_pages_;  // Of events that a group owns.
  // The events of the inline paths, in the order in which they were opened. Those of the software PMU are one group.
  std::vector<open::LiveRing> inline_events_;
  BaseRenewer base_;
  std::optional<open::LiveRing> epoch_event_;  // Counts nothing: its page has the epochs if no other page has them.
  uint32_t unknown_epoch_ = 0;
  bool in_forked_child_ = false;  // True in a forked child.

  sys::ForkListener fork_listener_;  // Declared last: registered only after everything that it releases exists.
};

}  // namespace perfkit::count
