// Enters the tables of one profile into those of another: Profile::Merge.
#pragma once

#include "perfkit/profile.h"

namespace perfkit {

// Adds all of `from` to `to`, apart from when the profiles were made. Requires Check() of both, and that they are two
// objects.
void MergeTables(Profile& to, const Profile& from);

}  // namespace perfkit
