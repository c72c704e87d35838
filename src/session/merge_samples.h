// Makes room for new samples: the oldest ones lose their times, never their sums.
#pragma once

#include <cstdint>
#include <span>

#include "perfkit/profile.h"

namespace perfkit::session {

// Merges the older half of the single samples, by thread, stack, event, label and quality, into samples without a time;
// drops the waits that only they had, and counts both in the accounting. The wait `kept` stays, at its index.
void MergeOldest(Profile& profile, uint32_t kept);
// Gives the samples of each thread i to the thread renamed[i]. If that is another one, they lose their times, as by
// MergeOldest. The threads themselves stay as they are.
void MergeThreads(Profile& profile, std::span<const uint32_t> renamed, uint32_t kept);

}  // namespace perfkit::session
