// What a profile is worth, in words: for the comments, notes or properties of a file.
#pragma once

#include <string>
#include <vector>

#include "perfkit/profile.h"

namespace perfkit::exporters {

// A sentence each: how long, of how many threads and samples; each event's total and what became of its samples; what
// the stacks are worth; what is missing; what making it cost; the profile's notes.
std::vector<std::string> AccountingLines(const Profile& profile);

}  // namespace perfkit::exporters
