// Finds the frames of a profile that have all of their zones and waits.
#pragma once

#include <cstdint>
#include <span>

#include "perfkit/profile.h"

namespace perfkit::session {

// Clears ProfileZone::is_whole of the frames that are not whole, for a session that has merged its oldest samples and
// forgotten its oldest zones. `zones_known_ns`: for each thread, the time from which all of its zones are known.
// Requires samples in order of time.
void MarkWholeFrames(Profile& profile, std::span<const uint64_t> zones_known_ns);

}  // namespace perfkit::session
