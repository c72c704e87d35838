// Which events a benchmark wants: names to a set that can be opened, and a reason for each that cannot.
//
// A name that is wrong or that this machine lacks must not cost the others: it stays in the choice, with why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perfkit/event.h"

namespace perfkit::adapter {

struct Wanted {
  enum class Source : uint8_t { kSet, kAllocations };

  std::string name;
  std::string why_not;  // in a few words; "": it can be counted, as far as can be known without opening it
  size_t index = 0;     // its place in the set that `groups` opens
  Source source = Source::kSet;
};

struct Choice {
  std::vector<Wanted> wanted;  // in the order in which they were written
  std::vector<std::vector<EventConfig>> groups;
  std::string wrong;  // the whole message about the first name that means nothing on any machine; ""
};

// At most kMaxEvents; what is beyond them is refused, by name.
Choice Choose(std::string_view list);
Choice Choose(std::span<const EventSpec> events);

}  // namespace perfkit::adapter
