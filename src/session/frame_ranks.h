// The numbers by which frames are ranked besides their length: the time in a zone, or the count of an event, for each
// name of KeepFrames::worst_by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/count/frame/event_plan.h"

namespace perfkit::session {

// Not thread-safe.
class FrameRanks {
 public:
  static constexpr size_t kMaxNames = 64;

  // At most kMaxNames names.
  explicit FrameRanks(std::vector<std::string> names) : ranks_(names.size()) {
    for (size_t i = 0; i < names.size(); ++i) ranks_[i].name = std::move(names[i]);
  }

  size_t size() const { return ranks_.size(); }

  // Names that are events' are of counts, not of zones.
  void SetEvents(const count::EventPlan& events);
  // A zone `name` has the label `label`, whose text is `path`, within the zone with the label `parent`; 0: it is
  // outermost.
  void AddZone(uint32_t label, std::string_view name, std::string_view path, uint32_t parent);

  // Returns the numbers of a frame with these counts, and without time in zones. Bit i of `missing`: value i says
  // nothing.
  std::vector<uint64_t> Counts(std::span<const uint64_t> values, uint32_t missing);
  // Adds to a frame's numbers that its thread spent `ns` with this label.
  void AddTime(uint32_t label, uint64_t ns, std::span<uint64_t> numbers);

  // Returns the names whose bit is set: "physics, page-faults".
  std::string Names(uint64_t mask) const;
  // Returns the names for which no frame had a number other than 0.
  std::vector<std::string> Unused() const;

 private:
  static constexpr size_t kNoEvent = SIZE_MAX;

  struct Rank {
    std::string name;
    size_t event = kNoEvent;  // index in the events of the FrameCounter
    bool is_used = false;
  };

  std::vector<Rank> ranks_;
  std::vector<uint64_t> of_label_;  // bit i: time with the label counts for name i
};

}  // namespace perfkit::session
