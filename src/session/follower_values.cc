// Turns the kernel's running counts into differences. A counter starts at 0 when its thread does, or, for those that
// exist at the start, when the session does; so the first value of a thread that started after known_from_ns_ is a
// difference already.
#include "src/session/follower_values.h"

namespace perfkit::session {

uint64_t FollowerValues::Grown(uint32_t thread, uint64_t born_ns, uint64_t id, uint64_t value) {
  const auto [entry, is_new] = last_.try_emplace({thread, id}, born_ns >= known_from_ns_ ? 0 : value);
  const uint64_t last = entry->second;
  entry->second = value;
  return value >= last ? value - last : 0;
}

void FollowerValues::Restart(uint64_t now_ns) {
  last_.clear();
  known_from_ns_ = now_ns;
}

void FollowerValues::Forget(uint32_t thread) {
  last_.erase(last_.lower_bound({thread, 0}), last_.lower_bound({thread + 1, 0}));
}

}  // namespace perfkit::session
