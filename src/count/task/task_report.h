// Formats what a TaskCounter has counted.
#pragma once

#include <span>
#include <string>

#include "perfkit/metric.h"
#include "src/count/task/task_counter_impl.h"

namespace perfkit::count {

std::string FormatTasks(const TaskCounterImpl& impl, std::span<const Metric> metrics);

}  // namespace perfkit::count
