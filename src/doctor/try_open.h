// Opens an event briefly, to find out whether the kernel permits it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "src/open/open_event.h"
#include "src/open/task_cpu.h"

namespace perfkit::doctor {

// Opens exactly `attr` at `task_cpu`, without the retries that would restrict it, and closes it.
absl::Status TryToOpen(const sys::PerfEventAttr& attr, const open::TaskCpu& task_cpu, std::string asked,
                       const sys::Rights& rights);

// Returns true for an error of an event that failed because this process or the machine has no descriptor left.
bool LacksDescriptor(const absl::Status& status);

// Returns the attr of a software event; it covers user space only unless `user_only` is false.
sys::PerfEventAttr SoftwareAttr(uint64_t config, bool user_only = true);

}  // namespace perfkit::doctor
