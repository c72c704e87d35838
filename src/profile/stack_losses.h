// Why live stacks were not taken: the parts of StackAccounting::skipped(), in words.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "perfkit/sampler_stats.h"

namespace perfkit::profile {

struct StackLoss {
  std::string_view what;
  uint64_t StackAccounting::*count;
};

inline constexpr std::array<StackLoss, 7> kStackLosses = {{
    {"stale", &StackAccounting::stale},
    {"over the walk limit", &StackAccounting::walk_limit},
    {"without a ring", &StackAccounting::no_ring},
    {"ring full", &StackAccounting::ring_full},
    {"paused", &StackAccounting::paused},
    {"given up", &StackAccounting::given_up},
    {"not signalled", &StackAccounting::coalesced},
}};

}  // namespace perfkit::profile
