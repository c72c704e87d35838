// Cuts the time of a thread into parts. Zones become a list of changes: from this time on, this is the innermost zone.
// A time is split by walking changes and waits side by side; a wait takes its time away from the zone that it fell in.
// The rest of what was measured may be odd (logs lose records): zones that overlap without being nested, and waits that
// overlap, are cut, so that what begins first goes first and the lengths still add up.
#include "src/profile/frame_parts.h"

#include <algorithm>
#include <utility>

#include "src/profile/wait_text.h"

namespace perfkit::profile {

uint32_t PartNames::Of(FramePart::Kind kind, std::string text) {
  const auto [entry, is_new] = numbers_.try_emplace({kind, std::move(text)}, static_cast<uint32_t>(names_.size()));
  if (is_new) names_.push_back(&entry->first);
  return entry->second;
}

ThreadParts::ThreadParts(const Profile& profile, uint32_t thread, PartNames& names) {
  // Before the first zone, and between zones, the part is the zone "". So there is always a last change before any
  // time.
  changes_.push_back({0, names.Of(FramePart::Kind::kZone, "")});
  AddZones(profile, thread, names);
  AddWaits(profile, thread, names);
}

void ThreadParts::AddZones(const Profile& profile, uint32_t thread, PartNames& names) {
  std::vector<const ProfileZone*> zones;
  for (const ProfileZone& zone : profile.zones) {
    if (zone.thread == thread && !zone.is_frame && zone.to_ns > zone.from_ns) zones.push_back(&zone);
  }
  // Outer zones first: of two that begin together, the longer one.
  std::stable_sort(zones.begin(), zones.end(), [](const ProfileZone* a, const ProfileZone* b) {
    return std::pair(a->from_ns, b->to_ns) < std::pair(b->from_ns, a->to_ns);
  });
  struct Open {
    uint64_t to_ns = 0;
    std::string path;
    uint32_t part = 0;
  };
  std::vector<Open> open;  // the innermost last
  const auto leave = [&] {
    const uint64_t at_ns = open.back().to_ns;
    open.pop_back();
    changes_.push_back({at_ns, open.empty() ? changes_[0].part : open.back().part});
  };
  for (const ProfileZone* const zone : zones) {
    while (!open.empty() && open.back().to_ns <= zone->from_ns) leave();
    const std::string& name = profile.strings[zone->name];
    const std::string path = open.empty() ? name : open.back().path + "/" + name;
    // No zone outlives its parent, so that zones end in the order of `open`, and changes_ is in order of time.
    const uint64_t to_ns = open.empty() ? zone->to_ns : std::min(zone->to_ns, open.back().to_ns);
    open.push_back({to_ns, path, names.Of(FramePart::Kind::kZone, path)});
    changes_.push_back({zone->from_ns, open.back().part});
  }
  while (!open.empty()) leave();
}

void ThreadParts::AddWaits(const Profile& profile, uint32_t thread, PartNames& names) {
  const size_t off_cpu = profile.EventIndex(kOffCpuEvent);
  for (uint32_t i = 0; i < profile.samples.size(); ++i) {
    const ProfileSample& sample = profile.samples[i];
    if (sample.thread != thread || sample.event != off_cpu || sample.merged()) continue;
    FramePart::Kind kind = FramePart::Kind::kWait;
    std::string text;
    if (sample.wait != ProfileSample::kNoWait) {
      const ProfileWait& wait = profile.waits[sample.wait];
      if (wait.preempted) kind = FramePart::Kind::kPreempted;
      if (!wait.preempted) text = WaitKind(profile, wait);
    }
    // Profiles may be made by hand: the end must not wrap around.
    const uint64_t to_ns = sample.time_ns + std::min(sample.weight, UINT64_MAX - sample.time_ns);
    waits_.push_back({sample.time_ns, to_ns, names.Of(kind, std::move(text)), i});
  }
  std::stable_sort(waits_.begin(), waits_.end(), [](const Wait& a, const Wait& b) { return a.from_ns < b.from_ns; });
  // Cut so that none overlap: Split searches them by their ends, which are in order then.
  uint64_t last_ns = 0;
  for (Wait& wait : waits_) {
    wait.from_ns = std::max(wait.from_ns, last_ns);
    last_ns = wait.to_ns = std::max(wait.to_ns, wait.from_ns);
  }
}

// The last change until then.
std::vector<ThreadParts::Change>::const_iterator ThreadParts::ChangeAt(uint64_t ns) const {
  const auto is_before = [](const Change& change, uint64_t time_ns) { return change.from_ns <= time_ns; };
  return std::lower_bound(changes_.begin(), changes_.end(), ns, is_before) - 1;
}

uint32_t ThreadParts::ZoneAt(uint64_t ns) const { return ChangeAt(ns)->part; }

void ThreadParts::Split(uint64_t from_ns, uint64_t to_ns, Visit visit) const {
  auto change = ChangeAt(from_ns);
  const auto first =
      std::partition_point(waits_.begin(), waits_.end(), [&](const Wait& wait) { return wait.to_ns <= from_ns; });
  auto wait = static_cast<size_t>(first - waits_.begin());
  for (uint64_t at_ns = from_ns; at_ns < to_ns; ++change) {
    const uint64_t next_ns = change + 1 == changes_.end() ? to_ns : std::min(to_ns, (change + 1)->from_ns);
    if (next_ns > at_ns) SplitZone(at_ns, next_ns, change->part, wait, visit);
    at_ns = std::max(at_ns, next_ns);
  }
}

// Splits a time in which the innermost zone does not change. `wait` is the first one that may reach into it; on return
// the first that may reach beyond it.
void ThreadParts::SplitZone(uint64_t from_ns, uint64_t to_ns, uint32_t part, size_t& wait, Visit visit) const {
  uint64_t at_ns = from_ns;
  while (wait < waits_.size() && waits_[wait].from_ns < to_ns) {
    const Wait& off = waits_[wait];
    const uint64_t off_ns = std::max(off.from_ns, at_ns), on_ns = std::min(off.to_ns, to_ns);
    if (on_ns > off_ns) {
      if (off_ns > at_ns) visit(part, off_ns - at_ns, kNoSample);
      visit(off.part, on_ns - off_ns, off.sample);
      at_ns = on_ns;
    }
    if (off.to_ns > to_ns) break;
    ++wait;
  }
  if (at_ns < to_ns) visit(part, to_ns - at_ns, kNoSample);
}

}  // namespace perfkit::profile
