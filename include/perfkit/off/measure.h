// The functions of measure.h with PERFKIT_ENABLE=0. Included by measure.h; do not include it directly.
//
// The regions do not run, and each cost is unmeasurable with its reason.
#pragma once

#include "perfkit/measure.h"
#include "perfkit/off/reason.h"

namespace PERFKIT_NAMESPACE {

inline std::string_view EventClassName(EventClass event_class) {
  switch (event_class) {
    case EventClass::kExact: return "exact";
    case EventClass::kNearExact: return "near-exact";
    case EventClass::kNoisy: return "noisy";
    case EventClass::kTime: return "time";
  }
  return "unknown";
}

inline int64_t Cost::value() const { return 0; }
inline Interval Cost::interval() const { return {}; }
inline std::string Cost::ToString() const { return std::string(event.name) + " unmeasurable: " + unmeasurable; }

inline const Cost* Measurement::Find(const EventType& event) const {
  for (const Cost& cost : costs) {
    if (cost.event == event) return &cost;
  }
  return nullptr;
}

inline std::string Measurement::ToString() const {
  std::string text;
  for (const Cost& cost : costs) text += cost.ToString() + "\n";
  return text;
}

inline std::optional<Interval> Comparison::Ratio(const EventType&) const { return std::nullopt; }
inline std::string Comparison::ToString() const { return subject.ToString(); }

inline std::string ScalingResult::ToString() const { return at.empty() ? std::string() : at.front().ToString(); }

namespace detail {

inline Measurement Unmeasured(std::span<const EventType> events) {
  Measurement result;
  for (const EventType& event : events) {
    Cost& cost = result.costs.emplace_back();
    cost.event = event;
    cost.event_class = ClassOf(event);
    cost.unmeasurable = kOffReason;
  }
  return result;
}

}  // namespace detail

template <class Fn>
Measurement Measure(std::initializer_list<EventType> events, Fn&&, const MeasureOptions& = {}) {
  return detail::Unmeasured({events.begin(), events.size()});
}

template <class Fn, class Reference>
Comparison Compare(std::initializer_list<EventType> events, Fn&&, Reference&&, const MeasureOptions& = {}) {
  return {detail::Unmeasured({events.begin(), events.size()}), detail::Unmeasured({events.begin(), events.size()})};
}

template <class Fn>
ScalingResult Scaling(std::initializer_list<EventType> events, Fn&&, std::initializer_list<uint64_t> sizes,
                      const MeasureOptions& = {}) {
  ScalingResult result{sizes, {}};
  for (size_t i = 0; i < sizes.size(); ++i) result.at.push_back(detail::Unmeasured({events.begin(), events.size()}));
  return result;
}

}  // namespace PERFKIT_NAMESPACE
