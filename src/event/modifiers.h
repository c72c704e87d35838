// The letters after an event's colon, such as u k h (user, kernel, hypervisor only).
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "perfkit/event.h"

namespace perfkit::event {

// The modifiers as written. A group's letters are added to those of each member, as perf does:
// {cycles:u,instructions}:k counts cycles in user and kernel mode, and instructions in kernel mode.
struct Modifiers {
  bool user = false, kernel = false, hypervisor = false;  // None means all three.
  bool guest = false, host = false;                       // None means both, except as ApplyTo says.
  bool not_idle = false, pinned = false, sample_read = false, weak = false, exclusive = false;
  int precise = 0;  // Number of p.
  bool precise_max = false;

  // Sets the flags of `config`. As perf does, u and precise events exclude guests unless G is written too
  // (tools/perf/util/parse-events.c, get_event_modifier).
  void ApplyTo(EventConfig& config) const;
};

// Returns true if each character is a modifier of perf. Returns false for an empty text.
bool LooksLikeModifiers(std::string_view letters);

// Adds `letters`, a view into `whole`, to `modifiers`. Errors: InvalidArgument, with the letter, its position and the
// valid letters, if one is unknown or repeated, for more than three p, and for P with p.
absl::Status AddModifiers(std::string_view whole, std::string_view letters, Modifiers& modifiers);

}  // namespace perfkit::event
