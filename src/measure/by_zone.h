// What each zone of a region costs: for the message of an assertion that fails.
#pragma once

#include <string>

#include "perfkit/frame_counter.h"
#include "perfkit/measure.h"

namespace perfkit::measure {

// Zones that are switched off cost a load each. Off while it lives, so that what is measured is the region's own; then
// as they were. Null: there are none.
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

// Runs `region` twice more, the second time as one frame of `zones`, and gives a line for each zone of this thread.
std::string CostByZone(FrameCounter& zones, const detail::Region& region);

}  // namespace perfkit::measure
