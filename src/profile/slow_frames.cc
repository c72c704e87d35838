// Finds slow frames and what made them slow: a frame is compared with the median of its kind, part by part. One slow
// frame does not move a median. Where a session has kept the slow frames alone, the median is that of its references.
//
// Three steps: group frames by thread and kind; in each group, take the medians of lengths and of parts; then explain
// the worst frames of all groups. Only these are split again, to find the stacks of their parts.
#include "perfkit/slow_frames.h"

#include <fnmatch.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "src/profile/busy_threads.h"
#include "src/profile/faulted_memory.h"
#include "src/profile/frame_causes.h"
#include "src/profile/frame_counts.h"
#include "src/profile/frame_parts.h"

namespace perfkit {
namespace {

using profile::CausesOf;
using profile::ClockOf;
using profile::CountsOf;
using profile::FrameKind;
using profile::Median;
using profile::PartNames;
using profile::SamplesIn;
using profile::ThreadParts;
using profile::UsualTimes;
using profile::WaitPiece;
using profile::ZoneSamples;

constexpr std::string_view kUnknownZone = "[zone unknown]";  // ZoneTimeline::kUnknownZone

// The frames of one kind on one thread.
class FrameGroup {
 public:
  FrameGroup(const Profile& profile, const ThreadParts& parts, const PartNames& names, std::vector<uint32_t> frames)
      : profile_(profile), parts_(parts), names_(names), frames_(std::move(frames)), compared_(Compared()) {
    std::vector<uint64_t> lengths;
    std::map<uint32_t, std::vector<uint64_t>> values;  // by part
    for (const uint32_t frame : compared_) {
      lengths.push_back(Length(frame));
      for (const auto& [part, ns] : PartsOf(frame)) values[part].push_back(ns);
    }
    usual_ns_ = Median(std::move(lengths), compared_.size());
    for (auto& [part, of_part] : values) usual_[part] = Median(std::move(of_part), compared_.size());
  }

  // Calls add with the frames that took longer than usual or have a reason: their numbers in Profile::zones, and how
  // much longer.
  template <class Add>
  void ForEachSlow(Add&& add) const {
    for (const uint32_t frame : frames_) {
      const bool has_reason = profile_.zones[frame].reason != 0;
      if (Length(frame) > usual_ns_ || has_reason) add(frame, Length(frame) - usual_ns_, has_reason);
    }
  }

  SlowFrame Explain(uint32_t frame);

 private:
  std::vector<uint32_t> Compared() const;
  uint64_t Length(uint32_t frame) const { return profile_.zones[frame].to_ns - profile_.zones[frame].from_ns; }
  std::map<uint32_t, uint64_t> PartsOf(uint32_t frame) const;
  void FindStacks(uint32_t frame, std::map<uint32_t, FramePart>& parts) const;
  std::vector<WaitPiece> WaitsOf(uint32_t frame) const;
  void AddTimes(uint32_t frame, UsualTimes& sums) const;
  UsualTimes UsualBeside(uint32_t frame);
  double UsualGhz();
  ZoneSamples ClockSamplesOf(uint32_t frame) const;
  template <class Visit>
  void VisitClock(uint32_t frame, Visit&& visit) const;

  const Profile& profile_;
  const ThreadParts& parts_;
  const PartNames& names_;
  const std::vector<uint32_t> frames_;    // in Profile::zones
  const std::vector<uint32_t> compared_;  // those that tell what is usual, in order
  uint64_t usual_ns_ = 0;
  std::map<uint32_t, uint64_t> usual_;  // by part
  std::optional<UsualTimes> sums_;      // of all `compared_`, once a frame is explained
  profile::UsualCounts usual_counts_{profile_, compared_};
  std::optional<double> usual_ghz_;  // once a frame is explained
};

// A session that keeps slow frames has chosen others at random: the kept ones would raise the median.
std::vector<uint32_t> FrameGroup::Compared() const {
  std::vector<uint32_t> references;
  for (const uint32_t frame : frames_) {
    if (profile_.zones[frame].is_reference) references.push_back(frame);
  }
  return references.empty() ? frames_ : references;
}

std::map<uint32_t, uint64_t> FrameGroup::PartsOf(uint32_t frame) const {
  std::map<uint32_t, uint64_t> sums;
  const ProfileZone& zone = profile_.zones[frame];
  parts_.Split(zone.from_ns, zone.to_ns, [&](uint32_t part, uint64_t ns, uint32_t) { sums[part] += ns; });
  return sums;
}

SlowFrame FrameGroup::Explain(uint32_t frame) {
  SlowFrame slow{.zone = frame, .ns = Length(frame), .usual_ns = usual_ns_};
  std::map<uint32_t, FramePart> parts;
  for (const auto& [part, usual_ns] : usual_) {
    // A part that this frame lacks is entered if it usually is there: its excess is negative.
    if (usual_ns != 0) parts[part].usual_ns = usual_ns;
  }
  for (const auto& [part, ns] : PartsOf(frame)) parts[part].ns = ns;
  FindStacks(frame, parts);
  slow.counts = CountsOf(profile_, frame, usual_counts_);
  slow.faults = profile::FaultsByMemory(profile_, profile_.zones[frame]);
  slow.ghz = profile::FrequencyOf(profile_, profile_.zones[frame]);
  slow.usual_ghz = UsualGhz();
  slow.rest_ns = slow.excess_ns();
  for (auto& [number, part] : parts) {
    part.kind = names_[number].kind;
    part.name = names_[number].text;
    slow.rest_ns -= part.excess_ns();
    slow.parts.push_back(std::move(part));
  }
  std::stable_sort(slow.parts.begin(), slow.parts.end(),
                   [](const FramePart& a, const FramePart& b) { return a.excess_ns() > b.excess_ns(); });
  slow.causes = CausesOf(profile_, slow, WaitsOf(frame), ClockSamplesOf(frame), UsualBeside(frame));
  slow.others = profile::BusyBeside(profile_, profile_.zones[frame]);
  return slow;
}

std::vector<WaitPiece> FrameGroup::WaitsOf(uint32_t frame) const {
  std::vector<WaitPiece> waits;
  const ProfileZone& zone = profile_.zones[frame];
  uint64_t at_ns = zone.from_ns;
  parts_.Split(zone.from_ns, zone.to_ns, [&](uint32_t part, uint64_t ns, uint32_t sample) {
    const bool goes_on = !waits.empty() && waits.back().sample == sample && waits.back().to_ns == at_ns;
    if (goes_on) waits.back().to_ns += ns;
    if (!goes_on && sample != ThreadParts::kNoSample) {
      waits.push_back({names_[part].kind, names_[part].text, at_ns, at_ns + ns, sample});
    }
    at_ns += ns;
  });
  return waits;
}

void FrameGroup::AddTimes(uint32_t frame, UsualTimes& sums) const {
  for (const WaitPiece& piece : WaitsOf(frame)) {
    if (piece.kind != FramePart::Kind::kWait) continue;
    sums.off_ns[{piece.part, profile::DetailOf(profile_, piece)}] += piece.duration_ns();
  }
  VisitClock(frame, [&](const ProfileSample& sample, uint32_t part) {
    sums.sampled_ns[{names_[part].text, sample.stack}] += sample.weight;
  });
}

// Means, because a median of what most frames do not have at all is 0. The sums of all frames are made once: there may
// be many to explain.
UsualTimes FrameGroup::UsualBeside(uint32_t frame) {
  if (!sums_) {
    sums_.emplace();
    for (const uint32_t other : compared_) AddTimes(other, *sums_);
  }
  UsualTimes usual = *sums_, own;
  uint64_t others = compared_.size();
  if (std::ranges::binary_search(compared_, frame)) {
    AddTimes(frame, own);
    --others;
  }
  for (const auto times : {&UsualTimes::off_ns, &UsualTimes::sampled_ns}) {
    for (const auto& [key, ns] : own.*times) (usual.*times)[key] -= ns;
    std::erase_if(usual.*times, [](const auto& entry) { return entry.second == 0; });
    for (auto& [key, ns] : usual.*times) ns /= others;
  }
  return usual;
}

double FrameGroup::UsualGhz() {
  if (!usual_ghz_) {
    std::vector<double> known;
    for (const uint32_t frame : compared_) known.push_back(profile::FrequencyOf(profile_, profile_.zones[frame]));
    std::erase(known, 0.0);
    const size_t count = known.size();
    usual_ghz_ = Median(std::move(known), count);
  }
  return *usual_ghz_;
}

// Calls visit with the clock's samples in a frame, and the part of the zone that each fell in. That is found by time:
// the label may be longer than the part's name, if Profile::Filtered has removed the outer zones.
template <class Visit>
void FrameGroup::VisitClock(uint32_t frame, Visit&& visit) const {
  const ProfileZone& zone = profile_.zones[frame];
  const size_t clock = ClockOf(profile_, zone);
  for (const ProfileSample& sample : SamplesIn(profile_, zone)) {
    const bool is_ours = sample.thread == zone.thread && sample.event == clock;
    if (is_ours && profile_.strings[sample.label] != kUnknownZone) visit(sample, parts_.ZoneAt(sample.time_ns));
  }
}

ZoneSamples FrameGroup::ClockSamplesOf(uint32_t frame) const {
  ZoneSamples samples;
  VisitClock(frame, [&](const ProfileSample& sample, uint32_t part) {
    samples[names_[part].text].push_back(static_cast<uint32_t>(&sample - profile_.samples.data()));
  });
  return samples;
}

// Gives each wait the stack of its longest piece, and each zone the stack that most of its samples have.
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
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> samples;  // by part and stack
  VisitClock(frame, [&](const ProfileSample& sample, uint32_t number) {
    const auto found = parts.find(number);
    if (found == parts.end()) return;
    FramePart& part = found->second;
    part.samples += sample.samples;
    const uint32_t with_stack = samples[{number, sample.stack}] += sample.samples;
    if (with_stack <= part.samples_of_stack) return;
    part.samples_of_stack = with_stack;
    part.stack = sample.stack;
    part.quality = sample.quality;
  });
}

}  // namespace

std::vector<SlowFrame> FindSlowFrames(const Profile& profile, const SlowFrameOptions& options) {
  std::map<uint32_t, std::map<std::string_view, std::vector<uint32_t>>> frames;  // by thread and kind
  for (uint32_t i = 0; i < profile.zones.size(); ++i) {
    const ProfileZone& zone = profile.zones[i];
    if (!zone.is_frame || !zone.is_whole) continue;
    const std::string_view kind = FrameKind(profile.strings[zone.name]);
    // Filtered before groups are made, but by kind: a group is always whole, so that its medians do not depend on
    // options.
    const bool is_asked = options.name.empty() || fnmatch(options.name.c_str(), std::string(kind).c_str(), 0) == 0;
    if (is_asked) frames[zone.thread][kind].push_back(i);
  }
  PartNames names;
  std::vector<std::unique_ptr<ThreadParts>> threads;
  std::vector<std::unique_ptr<FrameGroup>> groups;
  struct Candidate {
    int64_t excess_ns = 0;
    uint32_t frame = 0;
    bool has_reason = false;
    FrameGroup* group = nullptr;
  };
  std::vector<Candidate> candidates;
  for (auto& [thread, by_kind] : frames) {
    threads.push_back(std::make_unique<ThreadParts>(profile, thread, names));
    for (auto& [kind, of_kind] : by_kind) {
      groups.push_back(std::make_unique<FrameGroup>(profile, *threads.back(), names, std::move(of_kind)));
      groups.back()->ForEachSlow([&](uint32_t frame, uint64_t excess_ns, bool has_reason) {
        candidates.push_back({static_cast<int64_t>(excess_ns), frame, has_reason, groups.back().get()});
      });
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.excess_ns > b.excess_ns; });
  std::vector<SlowFrame> slow;
  size_t without_reason = 0;
  for (const Candidate& candidate : candidates) {
    if (!candidate.has_reason && without_reason++ >= options.frames) continue;
    slow.push_back(candidate.group->Explain(candidate.frame));
  }
  return slow;
}

SlowFrame ExplainFrame(const Profile& profile, uint32_t zone) {
  const uint32_t thread = profile.zones[zone].thread;
  const std::string_view kind = FrameKind(profile.strings[profile.zones[zone].name]);
  std::vector<uint32_t> frames;
  for (uint32_t i = 0; i < profile.zones.size(); ++i) {
    const ProfileZone& other = profile.zones[i];
    const bool is_of_kind = other.is_frame && other.is_whole && other.thread == thread;
    if (i == zone || (is_of_kind && FrameKind(profile.strings[other.name]) == kind)) frames.push_back(i);
  }
  PartNames names;
  const ThreadParts parts(profile, thread, names);
  return FrameGroup(profile, parts, names, std::move(frames)).Explain(zone);
}

}  // namespace perfkit
