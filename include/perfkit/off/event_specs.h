// EventSpecs with PERFKIT_ENABLE=0. Included by event_specs.h; do not include it directly.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <vector>

#include "perfkit/event_type.h"

namespace PERFKIT_NAMESPACE {

// Always empty. Not a vector, because the compiler would keep a vector's functions in the program.
class EventSpecs {
 public:
  constexpr EventSpecs() noexcept {}
  constexpr EventSpecs(std::initializer_list<EventSpec>) noexcept {}
  EventSpecs(const std::vector<EventSpec>&) noexcept {}  // NOLINT(google-explicit-constructor)
  template <class Iterator>
  constexpr EventSpecs(Iterator, Iterator) noexcept {}

  void push_back(const EventSpec&) noexcept {}
  template <class Event>
  void emplace_back(Event&&) noexcept {}
  void clear() noexcept {}
  size_t size() const noexcept { return 0; }
  bool empty() const noexcept { return true; }
  const EventSpec* begin() const noexcept { return nullptr; }
  const EventSpec* end() const noexcept { return nullptr; }
};

}  // namespace PERFKIT_NAMESPACE
