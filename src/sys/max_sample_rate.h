// The highest frequency of samples that the kernel accepts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace perfkit::sys {

// Returns kernel.perf_event_max_sample_rate; nullopt if it can't be read. The kernel checks it when an event with a
// frequency is opened, but not when the rate of a clock is changed later, which is a period by then.
std::optional<uint64_t> MaxSampleRate(const std::string& proc = "/proc");

// Returns the remedy that raises it: "raise kernel.perf_event_max_sample_rate (sysctl, as root)", and what that takes.
std::string RaiseMaxSampleRate(const std::string& proc = "/proc");

}  // namespace perfkit::sys
