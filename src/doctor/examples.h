// Events that have a form instead of a list: one example of each that works on this process, whatever the machine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "perfkit/event_type.h"
#include "src/doctor/workload.h"

namespace perfkit::doctor {

struct Example {
  EventCategory category;
  std::string_view form;  // "mem:ADDRESS/LENGTH:rwx"
  std::string name;       // "mem:0x55d0c8a0/4:w"
};

// A raw event that means instructions on this kind of CPU, the watched word, the probed function. What this machine
// has no example of is left out.
std::vector<Example> ExamplesHere(const Workload& workload);

}  // namespace perfkit::doctor
