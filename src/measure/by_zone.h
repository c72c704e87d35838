// The cost of each zone of a region, for the message of an assertion that fails.
#pragma once

#include <string>

#include "perfkit/frame_counter.h"
#include "perfkit/measure.h"

namespace perfkit::measure {

// Disables zones as long as it lives, so that the measured cost is the region's own (a disabled zone costs a load), and
// then restores them. nullptr means no zones.
class ZonesOff {
 public:
  explicit ZonesOff(FrameCounter* zones) : zones_(zones), were_on_(zones != nullptr && zones->enabled()) {
    if (were_on_) zones_->SetEnabled(false);
  }
  ~ZonesOff() {
    if (were_on_) zones_->SetEnabled(true);
  }
  ZonesOff(const ZonesOff&) = delete;
  ZonesOff& operator=(const ZonesOff&) = delete;

 private:
  FrameCounter* zones_;
  bool were_on_;
};

// Runs `region` twice more, the second time as one frame of `zones`. Returns a line for each zone of this thread.
std::string CostByZone(FrameCounter& zones, const detail::Region& region);

}  // namespace perfkit::measure
