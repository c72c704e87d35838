// What a profile is worth, in words: for the comments, notes or properties of a file.
#pragma once

#include <string>
#include <vector>

#include "perfkit/profile.h"

namespace perfkit::exporters {

// A sentence each: how long, of how many threads and entries (merged samples are one entry); each event's total and
// what became of its samples; what the stacks are worth; what else is missing; what making it cost; the profile's
// notes.
std::vector<std::string> AccountingLines(const Profile& profile);

}  // namespace perfkit::exporters
