// What a thread waited for, in words.
#pragma once

#include <string>

#include "perfkit/profile.h"

namespace perfkit::profile {

// "preempted", the wait's detail, or "syscall 202", and who ended it: ", woken by worker (1234)". "" if nothing of that
// is known.
std::string WaitText(const Profile& profile, const ProfileWait& wait);

// The kind of a wait: its text without its waker, and without addresses, which another wait for the like has not:
// "futex".
std::string WaitKind(const Profile& profile, const ProfileWait& wait);

}  // namespace perfkit::profile
