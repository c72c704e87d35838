// What the other threads of a process did while one of them waited, and which of them it probably waited for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "perfkit/profile.h"

namespace perfkit::profile {

// Returns true for the names of a session's own threads, which are no part of the program.
inline bool IsOfSession(std::string_view thread) { return thread == "perfkit-session" || thread == "perfkit-rings"; }

// A thread between two times.
struct ThreadActivity {
  uint64_t sampled_ns = 0;    // on a CPU, by samples of the clock
  uint64_t preempted_ns = 0;  // off it, but runnable
  uint64_t blocked_ns = 0;
  // How long it surely did not wait for a CPU: it was sampled on one, or blocked. A wait without a known waker counts
  // only until the thread was last examined (ProfileWait::examined_ns): it may have been woken, and runnable, since.
  uint64_t shown_ns = 0;
  uint64_t last_run_ns = 0;  // when it ran last, as far as is known; 0: not at all
  bool stopped = false;      // it ran until about the end, and was blocked or ended then
  // Where it was blocked longest, or, if it was blocked for less time than it ran, the stack that most samples have.
  uint32_t stack = ProfileStack::kRoot;
  StackQuality quality = StackQuality::kNone;

  uint64_t runnable_ns() const { return sampled_ns + preempted_ns; }
};

// Returns the activity of the other threads of `thread`'s process between two times, by index in Profile::threads.
// Leaves out the session's own threads, and those that nothing is known about. O(samples).
std::map<uint32_t, ThreadActivity> ActivityBeside(const Profile& profile, uint32_t thread, uint64_t from_ns,
                                                  uint64_t to_ns);

// Returns the thread that probably ended a wait at to_ns: one that ran right before, preferably one that stopped then,
// because its work was done; among several, the one that could run longest. Otherwise one that could run for at least
// half of the wait, or nullopt.
std::optional<uint32_t> LikelyWaker(const Profile& profile, const std::map<uint32_t, ThreadActivity>& activity,
                                    uint64_t from_ns, uint64_t to_ns);

// Returns the name of the innermost zone that is open on a thread at a time; "" if none is.
std::string ZoneAt(const Profile& profile, uint32_t thread, uint64_t time_ns);

}  // namespace perfkit::profile
