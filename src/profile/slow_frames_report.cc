// Slow frames as text.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/slow_frames.h"
#include "src/profile/text_table.h"
#include "src/profile/wait_text.h"

namespace perfkit {
namespace {

using profile::CutMiddle;
using profile::OneLine;
using profile::WeightText;

constexpr size_t kMaxParts = 6, kMaxCalls = 10, kNameColumns = 32, kPartColumns = 90;

std::string TimeText(uint64_t ns) { return WeightText(ns, ProfileUnit::kNanoseconds); }
std::string ChangeText(int64_t ns) { return (ns < 0 ? "-" : "+") + TimeText(static_cast<uint64_t>(ns < 0 ? -ns : ns)); }

// "Read < Load < main": innermost first.
std::string StackText(const Profile& profile, uint32_t stack) {
  std::string text;
  size_t calls = 0;
  const auto add = [&](const std::string& name) {
    if (calls++ < kMaxCalls) text += (text.empty() ? "" : " < ") + CutMiddle(OneLine(name), kNameColumns);
  };
  for (; stack != ProfileStack::kRoot && calls <= kMaxCalls; stack = profile.stacks[stack].parent) {
    const uint32_t location = profile.stacks[stack].location;
    if (profile.CallsAt(location).empty()) add(profile.UnnamedCode(location));
    for (const ProfileCall& call : profile.CallsAt(location)) add(profile.CallName(location, call));
  }
  return calls > kMaxCalls ? text + " < ..." : text;
}

std::string PartText(const Profile& profile, const FramePart& part) {
  if (part.kind == FramePart::Kind::kPreempted) return "preempted: others ran";
  if (part.kind == FramePart::Kind::kWait) {
    const std::string text =
        part.wait == ProfileSample::kNoWait ? part.name : profile::WaitText(profile, profile.waits[part.wait]);
    return text.empty() ? "waited, for what is not known" : "waited: " + OneLine(text);
  }
  return part.name.empty() ? "ran in no zone" : "ran in " + OneLine(part.name);
}

std::string WhereText(const Profile& profile, const FramePart& part) {
  std::string text = StackText(profile, part.stack);
  if (text.empty()) return "";
  if (part.samples != 0) {
    absl::StrAppendFormat(&text, " (%d of %d samples)", part.samples_of_stack, part.samples);
  } else if (part.quality != StackQuality::kWhole) {
    absl::StrAppendFormat(&text, " (%s)", StackQualityName(part.quality));
  }
  return text;
}

std::string RowText(int64_t excess_ns, const std::string& here, const std::string& usually, const std::string& what) {
  return absl::StrFormat("%14s %12s %12s  %s\n", ChangeText(excess_ns), here, usually, CutMiddle(what, kPartColumns));
}

std::string FrameText(const Profile& profile, const SlowFrame& frame) {
  const ProfileZone& zone = profile.zones[frame.zone];
  const uint64_t after_ns = zone.from_ns - std::min(zone.from_ns, profile.from_ns);
  std::string text = absl::StrFormat(
      "%s of %s at %s: %s, %s more than usual%s%s\n", OneLine(profile.strings[zone.name]),
      OneLine(profile::ThreadText(profile, zone.thread)), TimeText(after_ns), TimeText(frame.ns),
      TimeText(frame.ns - frame.usual_ns), zone.cause != 0 ? ": " : "", OneLine(profile.strings[zone.cause]));
  int64_t left_ns = frame.excess_ns();
  for (size_t i = 0; i < std::min(frame.parts.size(), kMaxParts); ++i) {
    const FramePart& part = frame.parts[i];
    // Parts are sorted by excess: from here on each explains less than 5 % of the frame's.
    if (part.excess_ns() * 20 < frame.excess_ns()) break;
    left_ns -= part.excess_ns();
    text += RowText(part.excess_ns(), TimeText(part.ns), TimeText(part.usual_ns), PartText(profile, part));
    const std::string where = WhereText(profile, part);
    if (!where.empty()) text += std::string(44, ' ') + where + "\n";
  }
  // The rows sum up to the excess in the headline.
  if (left_ns != 0) text += RowText(left_ns, "", "", "all else");
  return text;
}

// What the text can't tell.
std::string Gaps(const Profile& profile) {
  std::string text;
  if (profile.EventIndex(kOffCpuEvent) == profile.events.size()) {
    text += "# \"ran\" includes time off the CPU, which was not recorded (SessionClock::kWall)\n";
  }
  if (profile.accounting.times_forgotten != 0) text += "# early frames are left out: their waits were merged\n";
  if (profile.accounting.zones_forgotten != 0) text += "# early frames are left out: there was no room for them\n";
  const auto was_paused = [](const ProfileEvent& event) { return event.accounting.paused != 0; };
  if (std::any_of(profile.events.begin(), profile.events.end(), was_paused)) {
    text += "# what threads did while the session was paused is told as \"ran\"\n";
  }
  if (profile.accounting.zone_records_lost != 0) {
    absl::StrAppendFormat(&text, "# %d begins and ends of zones are missing: parts may be wrong there\n",
                          profile.accounting.zone_records_lost);
  }
  return text;
}

}  // namespace

std::string FormatSlowFrames(const Profile& profile, const SlowFrameOptions& options) {
  if (const absl::Status status = profile.Check(); !status.ok()) return absl::StrFormat("%s\n", status.message());
  const std::vector<SlowFrame> slow = FindSlowFrames(profile, options);
  const auto frames =
      std::count_if(profile.zones.begin(), profile.zones.end(), [](const ProfileZone& zone) { return zone.is_frame; });
  std::string text = absl::StrFormat("# the %d slowest of %d frames\n", slow.size(), frames) + Gaps(profile);
  text += absl::StrFormat("#%13s %12s %12s  %s\n", "more", "here", "usually", "what, and where most of it was");
  for (const SlowFrame& frame : slow) text += "\n" + FrameText(profile, frame);
  return text;
}

}  // namespace perfkit
