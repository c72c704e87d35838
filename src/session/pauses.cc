// Finds the pause of a time by a binary search, because a program may pause a session in each frame.
#include "src/session/pauses.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace perfkit::session {

void Pauses::Begin(uint64_t now_ns) {
  if (pauses_.size() == kMaxPauses) {
    pauses_[1].from_ns = pauses_[0].from_ns;
    pauses_[1].count += pauses_[0].count;
    pauses_[1].ended_ns += pauses_[0].ended_ns;
    pauses_.erase(pauses_.begin());
  }
  pauses_.push_back({.from_ns = now_ns});
}

void Pauses::End(uint64_t now_ns) {
  if (pauses_.empty() || pauses_.back().to_ns != UINT64_MAX) return;
  pauses_.back().to_ns = now_ns;
  pauses_.back().ended_ns = now_ns - pauses_.back().from_ns;
}

bool Pauses::Overlaps(uint64_t from_ns, uint64_t to_ns) const {
  const auto is_before = [](const Pause& pause, uint64_t time_ns) { return pause.to_ns <= time_ns; };
  const auto pause = std::lower_bound(pauses_.begin(), pauses_.end(), from_ns, is_before);
  return pause != pauses_.end() && pause->from_ns < to_ns;
}

void Pauses::Mark(Profile& profile) const {
  if (pauses_.empty()) return;
  for (ProfileZone& zone : profile.zones) {
    if (zone.is_frame && Overlaps(zone.from_ns, zone.to_ns)) zone.is_whole = false;
  }
}

void Pauses::AddNotes(std::vector<std::string>& notes, uint64_t from_ns) const {
  uint64_t count = 0, ended_ns = 0;
  for (const Pause& pause : pauses_) {
    if (pause.to_ns <= from_ns) continue;
    count += pause.count;
    ended_ns += pause.ended_ns;
  }
  if (count == 0) return;
  const std::string times = count == 1 ? "once" : absl::StrFormat("%d times", count);
  const bool goes_on = pauses_.back().to_ns == UINT64_MAX;
  notes.push_back(absl::StrFormat("the session was paused %s, for %.3f ms%s: frames of that time are not explained",
                                  times, static_cast<double>(ended_ns) * 1e-6, goes_on ? " and until now" : ""));
}

}  // namespace perfkit::session
