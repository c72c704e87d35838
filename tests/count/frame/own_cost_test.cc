// The calibration of what zones cost themselves.
#include "src/count/frame/own_cost.h"

#include <catch2/catch.hpp>
#include <utility>

#include "perfkit/frame_counter.h"
#include "src/count/frame/frame_counter_impl.h"

namespace perfkit {
namespace {

TEST_CASE("frames: the own cost is known whatever the limits are") {
  for (const auto& [zones, depth] : {std::pair<size_t, size_t>{1, 64}, {2, 64}, {256, 1}}) {
    FrameCounter frames({.events = {"page-faults"}, .max_zones = zones, .max_depth = depth});
    INFO(zones << " zones, depth " << depth);
    CHECK(count::FrameCounterImpl::Of(frames)->own_cost().zone_ns() > 0);
  }
}

}  // namespace
}  // namespace perfkit
