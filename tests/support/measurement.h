// Measurements: what a time or a share of time tells of the code and, in part, of what else the machine does.
#pragma once

namespace perfkit::testing {

// Returns true if `holds` returns true at one of three calls. It measures anew at each call, together with a control in
// between, such as the same work without perfkit, and compares the two. What holds on any machine under any load is
// checked outside, or by CHECK within `holds`.
template <class Holds>
bool HoldsOnceInThree(Holds&& holds) {
  for (int i = 0; i < 3; ++i) {
    if (holds()) return true;
  }
  return false;
}

}  // namespace perfkit::testing
