// What a thread waited for, in words.
#pragma once

#include <string>
#include <string_view>

#include "perfkit/profile.h"

namespace perfkit::profile {

// "preempted", with who did it ", by `cc1plus` (tid 123)"; the wait's detail, or "syscall 202"; who held the lock, ",
// held by loader (1234) in Load"; and who ended it, ", woken by worker (1234)". "" if nothing of that is known.
std::string WaitText(const Profile& profile, const ProfileWait& wait);

// "loader (1234)"; of a sum its name alone.
std::string ThreadAndNumber(const Profile& profile, uint32_t thread);

// "loader (1234)", and "loader (1234) in Load"; "" if no holder is known. The function is the innermost one of the
// program's own: those of the C and C++ libraries, which wait for it, are left out.
std::string HolderName(const Profile& profile, const ProfileWait& wait);
std::string HolderText(const Profile& profile, const ProfileWait& wait);

// "`cc1plus` (tid 123) and 2 other threads"; "`worker` (tid 12) of this program"; for the idle task a sentence that
// says so. "" if it is not known. `is_exact`: false if there may have been more others.
std::string PreempterText(const Profile& profile, const ProfilePreempter& preempter, bool is_exact = true);

// Returns true if a detail is of a wait for one pipe or FIFO alone: "read of descriptor 3 (pipe:[1234])".
bool IsOnePipe(std::string_view detail);

// The kind of a wait: its text without its holder and waker, and without addresses, which another wait for the like has
// not: "futex".
std::string WaitKind(const Profile& profile, const ProfileWait& wait);

}  // namespace perfkit::profile
