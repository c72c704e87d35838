// What the file of a slow frame does not know.
#pragma once

#include <string>
#include <vector>

#include "src/profile/frame_cut.h"

namespace perfkit::exporters {

// Returns a sentence for each gap: what was not recorded or not permitted, and what was lost.
std::vector<std::string> FrameGaps(const profile::FrameCut& cut);

}  // namespace perfkit::exporters
