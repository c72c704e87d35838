// The letters after an event's colon: u k h (user, kernel, hypervisor only) and their like.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "perfkit/event.h"

namespace perfkit::event {

// What was written. A group's letters are added to those of each member, as perf does:
// {cycles:u,instructions}:k counts cycles in user and kernel mode, instructions in kernel mode.
struct Modifiers {
  bool user = false, kernel = false, hypervisor = false;  // none: all three
  bool guest = false, host = false;                       // none: both, but see ApplyTo
  bool not_idle = false, pinned = false, sample_read = false, weak = false, exclusive = false;
  int precise = 0;  // the number of p
  bool precise_max = false;

  // Sets the flags that follow. As perf does, u and precise events leave guests out unless G is written too
  // (tools/perf/util/parse-events.c, get_event_modifier).
  void ApplyTo(EventConfig& config) const;
};

// Whether every character is a modifier of perf's; an empty text is none.
bool LooksLikeModifiers(std::string_view letters);

// Adds `letters`, a view into `whole`, to `modifiers`. InvalidArgument names the letter, its place and the letters
// that there are: unknown, written twice, more than three p, P beside p.
absl::Status AddModifiers(std::string_view whole, std::string_view letters, Modifiers& modifiers);

}  // namespace perfkit::event
