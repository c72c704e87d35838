// The depth at which the kernel cuts call chains.
#pragma once

#include <cstdint>
#include <string>

namespace perfkit::sys {

// Returns kernel.perf_event_max_stack: the maximum number of pcs in a chain, all its parts together. 127, the kernel's
// default, if it can't be read. It does not change while an event with chains is open (perf_event_max_stack_handler).
uint32_t MaxCallChain(const std::string& proc = "/proc");

}  // namespace perfkit::sys
