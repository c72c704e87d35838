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

  // Ranks by the count of an event for each name that is an event's; by zones for all others.
  void SetEvents(const count::EventPlan& events);
  // Adds the label of a zone. `path`: the label's text; `parent`: the label of the enclosing zone, 0 if it is outermost.
  void AddZone(uint32_t label, std::string_view name, std::string_view path, uint32_t parent);

  // Returns the numbers of a frame from its counts alone, by name; 0 for names of zones. Bit i of `missing`: values[i]
  // is meaningless.
  std::vector<uint64_t> Counts(std::span<const uint64_t> values, uint32_t missing);
  // Adds `ns`, a time of the frame's thread with this label, to the frame's numbers.
  void AddTime(uint32_t label, uint64_t ns, std::span<uint64_t> numbers);

  // Returns the names whose bit in `mask` is set: "physics, page-faults".
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
