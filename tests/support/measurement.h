// Measurements: what a time or a share of time tells of the code and, in part, of what else the machine does.
#pragma once

#include "tests/support/work.h"

namespace perfkit::testing {

// Returns true if `holds` returns true at one of three calls. It measures anew at each call, together with a control in
// between, such as the same work without perfkit, and compares the two. What holds on any machine under any load is
// checked outside, or by CHECK within `holds`.
//
// With a sanitizer `holds` is called once, for what the sanitizer finds in it, and its result does not matter: the times
// are those of the sanitizer.
template <class Holds>
bool HoldsOnceInThree(Holds&& holds) {
  if (kSanitized) return holds() || true;
  for (int i = 0; i < 3; ++i) {
    if (holds()) return true;
  }
  return false;
}

}  // namespace perfkit::testing
