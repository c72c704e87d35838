// Finds slow frames and what made them slow: a frame is compared with the median of its kind, part by part. One slow
// frame does not move a median.
//
// Three steps: group frames by thread and kind; in each group, take the medians of lengths and of parts; then explain
// the worst frames of all groups. Only these are split again, to find the stacks of their parts.
#include "perfkit/slow_frames.h"

#include <fnmatch.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "src/profile/frame_parts.h"

namespace perfkit {
namespace {

using profile::PartNames;
using profile::ThreadParts;

// Returns the time from which on all zones and waits of a thread are known: frames that began earlier can't be told.
// The oldest samples lose their times first (Profile::samples has those in front), so the first one with a time is
// where whole knowledge begins.
uint64_t KnownFrom(const Profile& profile, uint32_t thread) {
  uint64_t known_ns = 0;
  const auto first_single =
      std::partition_point(profile.samples.begin(), profile.samples.end(), [](const auto& s) { return s.merged(); });
  const size_t off_cpu = profile.EventIndex(kOffCpuEvent);
  const bool any_merged = std::any_of(profile.samples.begin(), first_single, [&](const ProfileSample& sample) {
    return sample.thread == thread && sample.event == off_cpu;
  });
  if (any_merged) known_ns = first_single == profile.samples.end() ? UINT64_MAX : first_single->time_ns;
  if (profile.accounting.zones_forgotten == 0) return known_ns;
  // If the first zone left ended at t, all that ended later are there, so that a frame from t on is complete.
  uint64_t first_end_ns = UINT64_MAX;  // zones are forgotten in the order in which they end
  for (const ProfileZone& zone : profile.zones) {
    if (!zone.is_frame && zone.thread == thread) first_end_ns = std::min(first_end_ns, zone.to_ns);
  }
  return std::max(known_ns, first_end_ns);
}

// "audio" of "audio 12": FrameCounter numbers its frames.
std::string_view KindOf(std::string_view name) {
  const size_t digits = name.find_last_not_of("0123456789");
  if (digits == name.npos || digits + 1 == name.size() || name[digits] != ' ') return name;
  return name.substr(0, digits);
}

// The frames of one kind on one thread.
class FrameGroup {
 public:
  FrameGroup(const Profile& profile, const ThreadParts& parts, const PartNames& names, std::vector<uint32_t> frames)
      : profile_(profile), parts_(parts), names_(names), frames_(std::move(frames)) {
    std::vector<uint64_t> lengths;
    std::map<uint32_t, std::vector<uint64_t>> values;  // by part
    for (const uint32_t frame : frames_) {
      lengths.push_back(Length(frame));
      for (const auto& [part, ns] : PartsOf(frame)) values[part].push_back(ns);
    }
    usual_ns_ = Median(std::move(lengths));
    for (auto& [part, of_part] : values) usual_[part] = Median(std::move(of_part));
  }

  // Calls add with the frames that took longer than usual: their numbers in Profile::zones, and how much longer.
  template <class Add>
  void ForEachSlow(Add&& add) const {
    for (const uint32_t frame : frames_) {
      if (Length(frame) > usual_ns_) add(frame, Length(frame) - usual_ns_);
    }
  }

  SlowFrame Explain(uint32_t frame) const;

 private:
  uint64_t Length(uint32_t frame) const { return profile_.zones[frame].to_ns - profile_.zones[frame].from_ns; }
  std::map<uint32_t, uint64_t> PartsOf(uint32_t frame) const;
  // Of all frames: those that have no value have 0.
  uint64_t Median(std::vector<uint64_t> values) const;
  void FindStacks(uint32_t frame, std::map<uint32_t, FramePart>& parts) const;

  const Profile& profile_;
  const ThreadParts& parts_;
  const PartNames& names_;
  std::vector<uint32_t> frames_;  // in Profile::zones
  uint64_t usual_ns_ = 0;
  std::map<uint32_t, uint64_t> usual_;  // by part
};

std::map<uint32_t, uint64_t> FrameGroup::PartsOf(uint32_t frame) const {
  std::map<uint32_t, uint64_t> sums;
  const ProfileZone& zone = profile_.zones[frame];
  parts_.Split(zone.from_ns, zone.to_ns, [&](uint32_t part, uint64_t ns, uint32_t) { sums[part] += ns; });
  return sums;
}

uint64_t FrameGroup::Median(std::vector<uint64_t> values) const {
  const size_t middle = frames_.size() / 2, zeros = frames_.size() - values.size();
  // The values as if they were sorted with all zeros first: the middle one is a zero, or at middle - zeros of the rest.
  if (middle < zeros) return 0;
  const auto at = values.begin() + static_cast<ptrdiff_t>(middle - zeros);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

SlowFrame FrameGroup::Explain(uint32_t frame) const {
  SlowFrame slow{.zone = frame, .ns = Length(frame), .usual_ns = usual_ns_};
  std::map<uint32_t, FramePart> parts;
  for (const auto& [part, usual_ns] : usual_) {
    // A part that this frame lacks is entered if it usually is there: its excess is negative.
    if (usual_ns != 0) parts[part].usual_ns = usual_ns;
  }
  for (const auto& [part, ns] : PartsOf(frame)) parts[part].ns = ns;
  FindStacks(frame, parts);
  slow.rest_ns = slow.excess_ns();
  for (auto& [number, part] : parts) {
    part.kind = names_[number].kind;
    part.name = names_[number].text;
    slow.rest_ns -= part.excess_ns();
    slow.parts.push_back(std::move(part));
  }
  std::stable_sort(slow.parts.begin(), slow.parts.end(),
                   [](const FramePart& a, const FramePart& b) { return a.excess_ns() > b.excess_ns(); });
  return slow;
}

// The event whose samples say where a thread ran: the first clock, else the first event.
size_t ClockOf(const Profile& profile) {
  for (size_t i = 0; i < profile.events.size(); ++i) {
    if (profile.events[i].unit == ProfileUnit::kNanoseconds && profile.events[i].name != kOffCpuEvent) return i;
  }
  return 0;
}

// Gives each wait the stack of its longest piece, and each zone the stack that most of its samples have. The label of a
// sample is the path of the zone that it fell in, as the part's name is.
void FrameGroup::FindStacks(uint32_t frame, std::map<uint32_t, FramePart>& parts) const {
  const ProfileZone& zone = profile_.zones[frame];
  std::map<uint32_t, uint64_t> longest_ns;
  parts_.Split(zone.from_ns, zone.to_ns, [&](uint32_t number, uint64_t ns, uint32_t sample) {
    if (sample == ThreadParts::kNoSample || ns <= longest_ns[number]) return;
    longest_ns[number] = ns;
    parts[number].stack = profile_.samples[sample].stack;
    parts[number].quality = profile_.samples[sample].quality;
    parts[number].wait = profile_.samples[sample].wait;
  });
  const auto is_before = [](const ProfileSample& sample, uint64_t time_ns) { return sample.time_ns < time_ns; };
  auto sample = std::lower_bound(profile_.samples.begin(), profile_.samples.end(), zone.from_ns, is_before);
  const size_t clock = ClockOf(profile_);
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> samples;  // by part and stack
  for (; sample != profile_.samples.end() && sample->time_ns < zone.to_ns; ++sample) {
    if (sample->thread != zone.thread || sample->event != clock || sample->merged()) continue;
    for (auto& [number, part] : parts) {
      if (names_[number].kind != FramePart::Kind::kZone || names_[number].text != profile_.strings[sample->label])
        continue;
      part.samples += sample->samples;
      const uint32_t with_stack = samples[{number, sample->stack}] += sample->samples;
      if (with_stack <= part.samples_of_stack) continue;
      part.samples_of_stack = with_stack;
      part.stack = sample->stack;
      part.quality = sample->quality;
    }
  }
}

}  // namespace

std::vector<SlowFrame> FindSlowFrames(const Profile& profile, const SlowFrameOptions& options) {
  std::map<uint32_t, std::map<std::string_view, std::vector<uint32_t>>> frames;  // by thread and kind
  std::map<uint32_t, uint64_t> known_from_ns;                                    // by thread
  for (uint32_t i = 0; i < profile.zones.size(); ++i) {
    const ProfileZone& zone = profile.zones[i];
    if (!zone.is_frame) continue;
    const auto [known, is_new] = known_from_ns.try_emplace(zone.thread, 0);
    if (is_new) known->second = KnownFrom(profile, zone.thread);
    if (zone.from_ns < known->second) continue;
    const std::string_view kind = KindOf(profile.strings[zone.name]);
    // Filtered before groups are made, but by kind: a group is always whole, so that its medians do not depend on
    // options.
    const bool is_asked = options.name.empty() || fnmatch(options.name.c_str(), std::string(kind).c_str(), 0) == 0;
    if (is_asked) frames[zone.thread][kind].push_back(i);
  }
  PartNames names;
  std::vector<std::unique_ptr<ThreadParts>> threads;
  std::vector<std::unique_ptr<FrameGroup>> groups;
  struct Candidate {
    uint64_t excess_ns = 0;
    uint32_t frame = 0;
    const FrameGroup* group = nullptr;
  };
  std::vector<Candidate> candidates;
  for (auto& [thread, by_kind] : frames) {
    threads.push_back(std::make_unique<ThreadParts>(profile, thread, names));
    for (auto& [kind, of_kind] : by_kind) {
      groups.push_back(std::make_unique<FrameGroup>(profile, *threads.back(), names, std::move(of_kind)));
      groups.back()->ForEachSlow([&](uint32_t frame, uint64_t excess_ns) {
        candidates.push_back({excess_ns, frame, groups.back().get()});
      });
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.excess_ns > b.excess_ns; });
  candidates.resize(std::min(candidates.size(), options.frames));
  std::vector<SlowFrame> slow;
  for (const Candidate& candidate : candidates) slow.push_back(candidate.group->Explain(candidate.frame));
  return slow;
}

}  // namespace perfkit
