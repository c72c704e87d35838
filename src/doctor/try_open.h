// Opens an event for a moment, just to see whether the kernel lets us.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "src/open/open_event.h"
#include "src/open/task_cpu.h"

namespace perfkit::doctor {

// Opens exactly `attr` at `task_cpu`, with no rung of the retry ladder left to restrict it, and closes it.
absl::Status TryToOpen(const sys::PerfEventAttr& attr, const open::TaskCpu& task_cpu, std::string asked,
                       const sys::Rights& rights);

// The attr of a software event, in user space only or not.
sys::PerfEventAttr SoftwareAttr(uint64_t config, bool user_only = true);

}  // namespace perfkit::doctor
