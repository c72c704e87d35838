// Makes the strings of a profile unique: entries are of the same text only if they have the same index.
#pragma once

#include "perfkit/profile.h"

namespace perfkit::profile {

// Where Profile::strings has a text several times, all that refer to it refer to the first one afterwards. The others
// stay, unused.
void MakeStringsUnique(Profile& profile);

}  // namespace perfkit::profile
