// The events of a FrameCounter: resolved once, and opened on each of its threads.
//
// Nothing here fails. An event whose name is wrong, or that this machine lacks, keeps its index: it has a reason and no
// numbers.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perfkit/counter.h"
#include "src/count/paths.h"

namespace perfkit::count {

// OpenFirst must not run during any other call; all other calls are thread-safe.
class EventPlan {
 public:
  // A text with braces is a list for ParseEventList, and adds all of its events. Events beyond kMaxEvents have no
  // index, nor has a group that does not fit as a whole: left_out() names them.
  EventPlan(std::span<const EventSpec> events, std::optional<ReadPath> only_path);

  // Return the events, opened on the calling thread; nullopt if none can be opened. OpenFirst runs the self-test, and
  // sets what the functions below return, also for the threads that call OpenNext. OpenNext tests again only if the
  // self-test may have refused a path. An event that counts something else than OpenFirst's (e.g. user space only), or
  // is multiplexable in only one of both sets, is not counted in its set.
  std::optional<CounterSet> OpenFirst();
  std::optional<CounterSet> OpenNext() const;

  size_t size() const { return names_.size(); }
  std::string_view name(size_t i) const { return names_[i]; }
  std::string_view reason(size_t i) const { return reasons_[i]; }  // Why event i has no number, or "".
  std::string_view cause(size_t i) const { return causes_[i]; }    // The same in a few words, for tables.
  ReadPath path(size_t i) const { return paths_[i]; }
  std::string_view unit(size_t i) const { return event(i).unit; }
  double scale(size_t i) const { return event(i).scale; }
  bool is_of_machine(size_t i) const { return IsEnergy(event(i)); }
  // The names of events without an index: "a, b".
  const std::string& left_out() const { return left_out_; }
  // Returns what its counts are restricted to, for titles: "user space only"; "" for most.
  std::string Restriction(size_t i) const;
  // Returns true if event i includes the kernel's part, and could do without.
  bool counts_kernel(size_t i) const;
  // Return masks, after OpenFirst. never(): bit i means that event i is not counted on any thread. multiplexable(): as
  // CounterReader::multiplexable.
  uint32_t never() const { return never_; }
  uint32_t multiplexable() const { return multiplexable_; }
  Validity fixed_flags(size_t i) const { return fixed_flags_[i]; }
  // Returns why event i, which the first thread counts, is not counted on the first later thread that lacks it; "" if
  // all count it.
  std::string later_reason(size_t i) const;
  // Returns true if OpenNext reads an event by another path than OpenFirst did.
  bool has_other_paths() const { return has_other_paths_.load(std::memory_order_relaxed); }
  // The first event without modifiers that is software event `config` (PERF_COUNT_SW_*); nullopt if there is none.
  std::optional<size_t> IndexOf(uint64_t software_config) const;

 private:
  // The position of an event in groups_.
  struct Position {
    size_t group, member;
  };
  const EventConfig& event(size_t i) const { return groups_[positions_[i].group][positions_[i].member]; }
  void Add(const EventSpec& spec);
  void SetReason(size_t i, const absl::Status& status);
  // Returns false if the group is left out.
  bool AddGroup(std::vector<EventConfig> group);
  absl::StatusOr<std::unique_ptr<Source>> Open(bool self_test, std::optional<bool> migrations_by_records) const;
  bool LacksMigrations(const Source& source) const;
  bool IsLikeFirst(const Source& source, size_t i) const;
  void SetLaterReason(size_t i, const absl::Status& status) const;

  std::vector<std::vector<EventConfig>> groups_;
  std::vector<Position> positions_;
  std::vector<std::string> names_, reasons_, causes_;
  std::string left_out_;
  std::array<ReadPath, kMaxEvents> paths_{};
  std::array<Validity, kMaxEvents> fixed_flags_{};
  std::optional<ReadPath> only_path_;
  uint32_t never_ = 0;
  uint32_t multiplexable_ = 0, gapped_ = 0;
  std::array<CountKind, kMaxEvents> kinds_{};
  bool test_each_ = false;
  std::optional<bool> migrations_by_records_;  // How OpenFirst has counted migrations; nullopt if it has not.
  mutable std::mutex later_mutex_;
  mutable std::array<std::string, kMaxEvents> later_reasons_;  // Guarded by later_mutex_.
  mutable std::atomic<bool> has_other_paths_{false};
};

}  // namespace perfkit::count
