// Regions for the sample programs: they pass, fail or are unmeasurable on any machine.
#pragma once

#include <cstdlib>

#include "perfkit/frame_counter.h"
#include "perfkit/measure.h"

namespace samples {

inline void* (*volatile allocate)(size_t) = std::malloc;

// Three allocations, exactly.
inline void AllocateThree() {
  for (int i = 0; i < 3; ++i) std::free(allocate(8));
}

inline perfkit::Measurement Three() {
  return perfkit::Measure({perfkit::event::kAllocations}, AllocateThree, {.only = perfkit::MeasureBackend::kHooks});
}

// Unmeasurable everywhere: clocks cannot be stepped.
inline perfkit::Measurement Never() {
  return perfkit::Measure({perfkit::event::kAllocations, perfkit::event::kTaskClock}, AllocateThree,
                          {.only = perfkit::MeasureBackend::kHooks});
}

// The same three in a zone, whose faults are told as well.
inline perfkit::Measurement Zoned() {
  static perfkit::FrameCounter frames({.events = {"page-faults"}});
  const auto grow = [] {
    PERFKIT_ZONE(frames, "grow");
    AllocateThree();
  };
  return perfkit::Measure({perfkit::event::kAllocations}, grow,
                          {.only = perfkit::MeasureBackend::kHooks, .zones = &frames});
}

}  // namespace samples
