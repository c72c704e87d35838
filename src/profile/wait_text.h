// What a thread waited for, in words.
#pragma once

#include <string>
#include <string_view>

#include "perfkit/profile.h"

namespace perfkit::profile {

// Returns what is known of these, joined by ", ": "preempted", or the wait's detail, or "syscall 202"; the preempter,
// "by `cc1plus` (tid 123)"; the holder of the lock, "held by loader (1234) in Load"; and the waker, "woken by worker
// (1234)". "" if nothing is known.
std::string WaitText(const Profile& profile, const ProfileWait& wait);

// "loader (1234)"; for a sum of ended threads (ProfileThread::is_sum), its name alone.
std::string ThreadAndNumber(const Profile& profile, uint32_t thread);

// "loader (1234)", and "loader (1234) in Load"; "" if no holder is known. The function is the innermost one on the
// holder's stack (ProfileWait::holder_stack) that is the program's own, not of the kernel or the C and C++ libraries.
std::string HolderName(const Profile& profile, const ProfileWait& wait);
std::string HolderText(const Profile& profile, const ProfileWait& wait);

// "`cc1plus` (tid 123) and 2 other threads"; "`worker` (tid 12) of this program"; for the idle task a sentence that
// says so. "" if it is not known. `is_exact`: false if there may have been more others.
std::string PreempterText(const Profile& profile, const ProfilePreempter& preempter, bool is_exact = true);

// Returns true if a detail is of a wait for one pipe or FIFO alone: "read of descriptor 3 (pipe:[1234])".
bool IsOnePipe(std::string_view detail);

// The same text for all waits for the same kind of thing: that of WaitText without preempter, holder and waker, and
// without addresses, the numbers of pipes and sockets, and timeouts: "futex", "read of descriptor 3 (pipe)", "sleep".
std::string WaitKind(const Profile& profile, const ProfileWait& wait);

}  // namespace perfkit::profile
