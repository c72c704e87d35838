// The events of a FrameCounter: resolved once, opened on every thread that takes part, and never an error.
//
// A FrameCounter must not fail for a name that is wrong or an event that this machine has not: such an event keeps its
// place and its reason, and has no numbers.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perfkit/counter.h"

namespace perfkit::count {

class EventPlan {
 public:
  EventPlan(std::span<const EventSpec> events, std::optional<ReadPath> only_path);

  // Opens everything on the calling thread. Nothing when nothing can be opened: then reason() says why.
  // The first call settles reasons and paths for all later ones; it is the one with the self-test, unless that found
  // something that every thread has to find for itself.
  std::optional<CounterSet> OpenFirst();
  std::optional<CounterSet> OpenNext() const;

  size_t size() const { return names_.size(); }
  std::string_view name(size_t i) const { return names_[i]; }
  std::string_view reason(size_t i) const { return reasons_[i]; }
  ReadPath path(size_t i) const { return paths_[i]; }
  std::string_view unit(size_t i) const { return event(i).unit; }
  double scale(size_t i) const { return event(i).scale; }
  // Bit i: event i is not counted at all; event i has times of its own. After OpenFirst.
  uint32_t never() const { return never_; }
  uint32_t multiplexable() const { return multiplexable_; }
  Validity fixed_flags(size_t i) const { return fixed_flags_[i]; }
  // The first event without modifiers that is software event `config` (PERF_COUNT_SW_*); nullopt if there is none.
  std::optional<size_t> IndexOf(uint64_t software_config) const;

 private:
  // Where an event is in groups_.
  struct Seat {
    size_t group, member;
  };
  const EventConfig& event(size_t i) const { return groups_[seats_[i].group][seats_[i].member]; }
  void Add(const EventSpec& spec);
  void AddGroup(std::vector<EventConfig> group);
  std::optional<CounterSet> Open(bool self_test, absl::Status* status) const;

  std::vector<std::vector<EventConfig>> groups_;
  std::vector<Seat> seats_;
  std::vector<std::string> names_, reasons_;
  std::array<ReadPath, kMaxEvents> paths_{};
  std::array<Validity, kMaxEvents> fixed_flags_{};
  std::optional<ReadPath> only_path_;
  uint32_t never_ = 0;
  uint32_t multiplexable_ = 0;
  bool test_each_ = false;
};

}  // namespace perfkit::count
