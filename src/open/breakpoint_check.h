// Tells whether this machine counts breakpoints. Some hypervisors let the guest write the debug registers, but not
// notice what they watch: the kernel then opens breakpoints, and all of them stay 0.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace perfkit::open {

// Watches a word of its own and writes it. Returns Unavailable, with `asked`, the cause and the remedy, if the kernel
// counts none of three writes. OK also if it can't find out, as where no debug register is free. Takes some 20 us.
absl::Status CheckBreakpoints(std::string_view asked);

}  // namespace perfkit::open
