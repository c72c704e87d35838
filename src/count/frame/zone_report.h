// The reports of a FrameCounter: its zones as data, and everything as text.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "perfkit/frame.h"
#include "perfkit/metric.h"
#include "src/count/frame/frame_counter_impl.h"

namespace perfkit::count {

// Appends the zones of one group of threads: parents before their children, children in the order of their first visit.
void AppendStats(const FrameCounterImpl& impl, const FrameCounterImpl::Group& group, std::vector<ZoneStats>* out);

// Returns one table for the wall time, for each counter and for each metric, then what was not counted, the hitches,
// and perfkit's own cost.
std::string FormatReport(FrameCounterImpl& impl, std::span<const Metric> metrics);

}  // namespace perfkit::count
