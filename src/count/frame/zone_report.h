// What a FrameCounter tells people: zones as data, and the whole as text.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "perfkit/frame.h"
#include "perfkit/metric.h"
#include "src/count/frame/frame_counter_impl.h"

namespace perfkit::count {

// The zones of one group of threads, every parent before its children, children in the order of their first visit.
void AppendStats(const FrameCounterImpl& impl, const FrameCounterImpl::Group& group, std::vector<ZoneStats>* out);

// One table for the wall, for each counter and for each metric, then what was not counted, the hitches, and our own
// cost.
std::string FormatReport(FrameCounterImpl& impl, std::span<const Metric> metrics);

}  // namespace perfkit::count
