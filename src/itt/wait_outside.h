// The wait for threads that are inside of the collector when it ends.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "src/itt/open_tasks.h"

namespace perfkit::itt {

// Waits until no thread is at work (OpenTasks::at_work). Gives up a thread that has run or slept for `give_up_after_ns`
// meanwhile: a handler has taken it out of a begin or an end by siglongjmp, as neither takes so long. Time in which the
// thread waits for a CPU, is stopped, or waits for a disk does not count. Returns the threads that were given up.
std::vector<const OpenTasks*> WaitUntilOutside(std::span<const std::shared_ptr<OpenTasks>> threads,
                                               uint64_t give_up_after_ns);

}  // namespace perfkit::itt
