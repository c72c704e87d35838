// What is known of waits for locks once calls have names and all samples are there.
#pragma once

#include <span>

#include "perfkit/profile.h"

namespace perfkit::session {

// Removes the holders of those waits of `samples` whose stacks do not prove that their threads waited for a lock
// (ProvesLock), and that have no record of perfkit::locks. Requires names. May be called again.
void KeepProvenHolders(Profile& profile, std::span<const ProfileSample> samples);

// Finds the stacks of holders that ran during the waits: those that most of their samples have. Requires samples in
// order of time.
void FindHolderStacks(Profile& profile);

}  // namespace perfkit::session
