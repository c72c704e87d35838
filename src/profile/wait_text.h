// What a thread waited for, in words.
#pragma once

#include <string>

#include "perfkit/profile.h"

namespace perfkit::profile {

// "preempted", the wait's detail, or "syscall 202"; who held the lock, ", held by loader (1234) in Load"; and who ended
// it, ", woken by worker (1234)". "" if nothing of that is known.
std::string WaitText(const Profile& profile, const ProfileWait& wait);

// "loader (1234)"; of a sum its name alone.
std::string ThreadAndNumber(const Profile& profile, uint32_t thread);

// "loader (1234)", and "loader (1234) in Load"; "" if no holder is known. The function is the innermost one of the
// program's own: those of the C and C++ libraries, which wait for it, are left out.
std::string HolderName(const Profile& profile, const ProfileWait& wait);
std::string HolderText(const Profile& profile, const ProfileWait& wait);

// The kind of a wait: its text without its holder and waker, and without addresses, which another wait for the like has
// not: "futex".
std::string WaitKind(const Profile& profile, const ProfileWait& wait);

}  // namespace perfkit::profile
