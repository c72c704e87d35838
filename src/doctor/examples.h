// Events that have a form instead of a list: one example of each that works in this process on any machine.
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

// Returns a raw event that counts instructions on this kind of CPU, the watched word, and the probed function. Leaves
// out forms without an example on this machine. `proc`: where procfs is mounted.
std::vector<Example> ExamplesHere(const Workload& workload, const std::string& proc = "/proc");

}  // namespace perfkit::doctor
