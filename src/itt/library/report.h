// The table of tasks that a program leaves at its exit.
#pragma once

#include <cstdint>
#include <string>

#include "perfkit/frame_counter.h"
#include "src/count/frame/event_plan.h"
#include "src/itt/timed_tasks.h"

namespace perfkit::itt {

struct Uncounted;

// Returns the tables of the zones of `frames`, of what has only times, and a line for each kind of task that has no
// number. `inside`: the number of threads that were inside of a task, so that their counts are missing.
std::string FormatTable(const FrameCounter& frames, const count::EventPlan& plan, const TimedTasks::Totals& timed,
                        const Uncounted& uncounted, uint32_t inside);

}  // namespace perfkit::itt
