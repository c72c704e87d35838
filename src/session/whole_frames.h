// Finds the frames of a profile that have all of their zones and waits.
#pragma once

#include "perfkit/profile.h"

namespace perfkit::session {

// Sets ProfileZone::is_whole of all frames, for a session that has merged its oldest samples and forgotten its oldest
// zones. Requires samples in order of time.
void MarkWholeFrames(Profile& profile);

}  // namespace perfkit::session
