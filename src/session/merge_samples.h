// Makes room for new samples by merging old ones, which lose their times. The sums stay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/functional/function_ref.h"
#include "perfkit/profile.h"

namespace perfkit::session {

// Merges the single samples for which `is_merged` returns true, by thread, stack, event, label, task and quality, into
// samples without a time. Drops the waits and the memory that only they had; times and waits are in the accounting. Waits 0 to `kept`,
// inclusive, stay at their indexes even if no sample has them: the caller refers to them. Afterwards the merged samples
// come first.
void MergeSamples(Profile& profile, uint32_t kept, absl::FunctionRef<bool(const ProfileSample& single)> is_merged);
// The same for the older half of the single samples.
void MergeOldest(Profile& profile, uint32_t kept);
// If more than `max_rows` samples are merged, all but the heaviest max_rows / 2 of them get the stack other_of(stack),
// which says only in which module they were, and StackQuality::kLeafOnly, unless they have kLastKnown. Those of equal
// thread, event, label, task, quality and module are then merged. Weights are compared as shares of the weights of
// their events. Requires that merged samples come first.
void MergeLightest(Profile& profile, size_t max_rows, absl::FunctionRef<uint32_t(uint32_t stack)> other_of);
// Gives the samples of each thread i, and the waits for locks that it held, to the thread renamed[i]. If that is
// another one, the samples lose their times, as by MergeOldest. The threads themselves stay as they are.
void MergeThreads(Profile& profile, std::span<const uint32_t> renamed, uint32_t kept);

}  // namespace perfkit::session
