// Completes waits for locks, once calls have names and all samples have been added.
#pragma once

#include <span>

#include "perfkit/profile.h"

namespace perfkit::session {

// Removes the holder of each wait of `samples` that has no record of perfkit::locks, and whose stack does not prove
// that its thread waited for a lock (ProvesLock). Requires names. May be called again.
void KeepProvenHolders(Profile& profile, std::span<const ProfileSample> samples);

// Sets ProfileWait::holder_stack for holders that ran during the wait, to the stack that most of their samples have in
// that time. Requires samples in order of time.
void FindHolderStacks(Profile& profile);

}  // namespace perfkit::session
