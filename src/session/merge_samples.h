// Makes room for new samples: the oldest ones lose their times, never their sums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/functional/function_ref.h"
#include "perfkit/profile.h"

namespace perfkit::session {

// Merges single samples for which `is_merged` says so, by thread, stack, event, label and quality, into samples without
// a time; drops the waits that only they had, and counts both in the accounting. The wait `kept` stays, at its index.
// The merged samples are the first ones afterwards.
void MergeSamples(Profile& profile, uint32_t kept, absl::FunctionRef<bool(const ProfileSample& single)> is_merged);
// The same for the older half of the single samples.
void MergeOldest(Profile& profile, uint32_t kept);
// If more than `max_rows` samples are merged, all but the heaviest max_rows / 2 of them keep only the module that they
// were in: for each one with a stack, other_of(stack) is the stack of all that. Weights are compared as shares of those
// of their events. Rows of one thread, event, label, quality and module are then one. Requires that merged samples are
// first.
void MergeLightest(Profile& profile, size_t max_rows, absl::FunctionRef<uint32_t(uint32_t stack)> other_of);
// Gives the samples of each thread i to the thread renamed[i]. If that is another one, they lose their times, as by
// MergeOldest. The threads themselves stay as they are.
void MergeThreads(Profile& profile, std::span<const uint32_t> renamed, uint32_t kept);

}  // namespace perfkit::session
