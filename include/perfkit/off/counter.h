// CounterSet and Counter with PERFKIT_ENABLE=0. Included by counter.h; do not include it directly.
#pragma once

#include "perfkit/counter.h"
#include "perfkit/off/reason.h"

namespace PERFKIT_NAMESPACE {

class CounterSet : public CounterReader {
 public:
  static detail::UnimplementedOr<CounterSet> Open(std::initializer_list<EventSpec>, Target = Target::ThisThread(),
                                                  const CounterOptions& = {}) {
    return {};
  }
  static detail::UnimplementedOr<CounterSet> Open(std::span<const EventSpec>, Target = Target::ThisThread(),
                                                  const CounterOptions& = {}) {
    return {};
  }
  std::string_view name(size_t) const { return ""; }
  ReadPath path(size_t) const { return ReadPath::kGroupRead; }
  detail::Unimplemented reason(size_t) const { return {}; }
  detail::Unimplemented Enable() { return {}; }
  detail::Unimplemented Disable() { return {}; }
};

class Counter {
 public:
  static detail::UnimplementedOr<Counter> Open(const EventSpec&, Target = Target::ThisThread(),
                                               const CounterOptions& = {}) {
    return {};
  }
  bool Read(Count& out) const noexcept {
    out = {};
    return false;
  }
  const CounterSet& set() const { return set_; }

 private:
  CounterSet set_;
};

}  // namespace PERFKIT_NAMESPACE
