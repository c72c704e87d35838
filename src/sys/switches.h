// Context switches of the calling thread, by the kernel's own counters, and a sure way to have one.
#pragma once

#include <cstdint>
#include <optional>

namespace perfkit::sys {

// Voluntary and involuntary ones so far, which needs no permission. Nothing where a sandbox refuses getrusage.
std::optional<uint64_t> ThreadSwitches() noexcept;

// Leaves the CPU, once at least. True when the counters say so; false when they say nothing, or no sleep helped.
bool SwitchAway() noexcept;

}  // namespace perfkit::sys
