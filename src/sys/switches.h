// Counts context switches of the calling thread by the kernel's own counters, and forces one.
#pragma once

#include <cstdint>
#include <optional>

namespace perfkit::sys {

// Returns the number of voluntary and involuntary switches so far. Needs no permission. Returns nullopt if a sandbox
// refuses getrusage.
std::optional<uint64_t> ThreadSwitches() noexcept;

// Leaves the CPU at least once. Returns true if the counters confirm it; false if they can't be read, or if no sleep
// helped.
bool SwitchAway() noexcept;

}  // namespace perfkit::sys
