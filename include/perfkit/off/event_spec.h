// EventSpec with PERFKIT_ENABLE=0. Included by event_type.h; do not include it directly.
#pragma once

#include <string>
#include <string_view>

#include "perfkit/event_type.h"

namespace PERFKIT_NAMESPACE {

// Accepts the same arguments and stores nothing, so that a list of events makes no strings.
struct EventSpec {
  constexpr EventSpec(const char*) noexcept {}       // NOLINT(google-explicit-constructor)
  constexpr EventSpec(std::string_view) noexcept {}  // NOLINT(google-explicit-constructor)
  EventSpec(const std::string&) noexcept {}          // NOLINT(google-explicit-constructor)
  constexpr EventSpec(const EventType&) noexcept {}  // NOLINT(google-explicit-constructor)
};

}  // namespace PERFKIT_NAMESPACE
