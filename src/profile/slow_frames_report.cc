// Slow frames as text.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/slow_frames.h"
#include "src/profile/faulted_memory.h"
#include "src/profile/part_text.h"
#include "src/profile/text_table.h"
#include "src/profile/wait_text.h"

namespace perfkit {
namespace {

using profile::CutMiddle;
using profile::OneLine;
using profile::PartText;
using profile::WeightText;

constexpr size_t kMaxCauses = 5, kCauseColumns = 150;
constexpr size_t kMaxParts = 6, kMaxCounts = 3, kMaxOthers = 3, kMaxCalls = 10, kNameColumns = 32, kPartColumns = 90;

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

// Where the holder of the lock was.
std::string HolderWhereText(const Profile& profile, const FramePart& part) {
  if (part.wait == ProfileSample::kNoWait) return "";
  const ProfileWait& wait = profile.waits[part.wait];
  const std::string text = StackText(profile, wait.holder_stack);
  return text.empty() ? "" : OneLine(profile::HolderName(profile, wait)) + ": " + text;
}

std::string RowText(const std::string& more, const std::string& here, const std::string& usually,
                    const std::string& what) {
  return absl::StrFormat("%14s %12s %12s  %s\n", more, here, usually, CutMiddle(what, kPartColumns));
}

std::string WhereRow(const std::string& where) { return where.empty() ? "" : std::string(44, ' ') + where + "\n"; }

// The counts that are beyond what is usual by most.
std::string CountTexts(const Profile& profile, const SlowFrame& frame) {
  constexpr double kMinExcess = 16, kMinRatio = 2;
  std::vector<const FrameCount*> counts;
  for (const FrameCount& count : frame.counts) {
    if (count.excess() >= kMinExcess && count.value >= kMinRatio * count.usual) counts.push_back(&count);
  }
  std::stable_sort(counts.begin(), counts.end(), [](const FrameCount* a, const FrameCount* b) {
    return a->value * (b->usual + 1) > b->value * (a->usual + 1);
  });
  counts.resize(std::min(counts.size(), kMaxCounts));
  std::string text;
  for (const FrameCount* const count : counts) {
    text += RowText(absl::StrFormat("%+.0f", count->excess()), absl::StrFormat("%.0f", count->value),
                    absl::StrFormat("%.0f", count->usual), OneLine(count->name));
    const std::string where = StackText(profile, count->stack);
    if (!where.empty()) text += WhereRow(where + absl::StrFormat(" (%.0f)", count->at_stack));
  }
  return text;
}

// Which memory the page faults were in.
std::string FaultTexts(const Profile& profile, const SlowFrame& frame) {
  std::string text;
  for (const FaultedMemory& faults : profile::ToldFaults(frame)) {
    text += RowText("", absl::StrFormat("%d", faults.faults), "", profile::FaultText(profile, faults));
    const std::string where = StackText(profile, faults.stack);
    if (!where.empty()) text += WhereRow(where + absl::StrFormat(" (%d)", faults.at_stack));
  }
  return text;
}

// Where the other threads were that ran for a quarter of the frame or more.
std::string OtherTexts(const Profile& profile, const SlowFrame& frame) {
  std::string text;
  for (size_t i = 0; i < std::min(frame.others.size(), kMaxOthers); ++i) {
    const FrameThread& other = frame.others[i];
    if (other.ns < frame.ns / 4) break;
    const std::string name = OneLine(profile::ThreadAndNumber(profile, other.thread));
    text += absl::StrFormat("%14s %12s %12s  %s ran meanwhile\n", "", TimeText(other.ns), "", name);
    const std::string where = StackText(profile, other.stack);
    if (!where.empty()) text += WhereRow(where + absl::StrFormat(" (%s)", TimeText(other.stack_ns)));
  }
  return text;
}

std::string HeadText(const Profile& profile, const SlowFrame& frame) {
  const ProfileZone& zone = profile.zones[frame.zone];
  const uint64_t after_ns = zone.from_ns - std::min(zone.from_ns, profile.from_ns);
  const bool is_long = frame.excess_ns() >= 0;
  std::string text = absl::StrFormat(
      "%s of %s at %s: %s, %s %s than usual", OneLine(profile.strings[zone.name]),
      OneLine(profile::ThreadText(profile, zone.thread)), TimeText(after_ns), TimeText(frame.ns),
      TimeText(is_long ? frame.ns - frame.usual_ns : frame.usual_ns - frame.ns), is_long ? "more" : "less");
  if (zone.cause != 0) text += ": " + OneLine(profile.strings[zone.cause]);
  if (zone.reason != 0) text += "\n  kept: " + OneLine(profile.strings[zone.reason]);
  if (zone.state != 0) text += "\n  state: " + OneLine(profile.strings[zone.state]);
  if (zone.worst_by != 0) text += "\n  among the worst by " + OneLine(profile.strings[zone.worst_by]);
  return text + "\n";
}

// The causes that explain 5 % of the excess or more, and the sum of the others.
std::string CausesText(const Profile& profile, const SlowFrame& frame) {
  const int64_t min_share_ns = std::max<int64_t>(frame.excess_ns(), 0) / 20;
  std::string text;
  const auto add = [&](int64_t ns, std::string_view confidence, const std::string& cause) {
    absl::StrAppendFormat(&text, "%14s  %-8s %s\n", ChangeText(ns), confidence, CutMiddle(cause, kCauseColumns));
  };
  int64_t left_ns = frame.excess_ns();
  for (size_t i = 0; i < std::min(frame.causes.size(), kMaxCauses); ++i) {
    const FrameCause& cause = frame.causes[i];
    if (cause.share_ns <= min_share_ns) break;
    left_ns -= cause.share_ns;
    add(cause.share_ns, FrameCauseConfidenceName(cause.confidence), FormatFrameCause(profile, cause));
  }
  if (text.empty()) return "";
  if (left_ns != 0) add(left_ns, "", "all else");
  return "  causes\n" + text + "  parts\n";
}

std::string FramesAre(uint64_t frames) { return frames == 1 ? "1 frame is" : absl::StrFormat("%d frames are", frames); }

// Why no frame is shown.
std::string WhyNone(size_t frames, const SlowFrameOptions& options) {
  if (frames == 0) {
    return "# no frame ended while the session ran, or the session has no FrameCounter. Remedy: set "
           "SessionOptions::frames\n";
  }
  if (options.frames == 0) return "# none is shown: SlowFrameOptions::frames is 0\n";
  if (options.name.empty()) return "# no frame took longer than usual\n";
  return absl::StrFormat("# no frame with a name like '%s' took longer than usual\n", OneLine(options.name));
}

// What the text can't tell.
std::string Gaps(const Profile& profile) {
  std::string text;
  if (profile.EventIndex(kOffCpuEvent) == profile.events.size()) {
    text += "# \"ran\" includes time off the CPU, which was not recorded (SessionClock::kWall)\n";
  }
  const auto parts = std::count_if(profile.zones.begin(), profile.zones.end(),
                                   [](const ProfileZone& zone) { return zone.is_frame && !zone.is_whole; });
  if (parts != 0) {
    absl::StrAppendFormat(&text, "# %s left out: some of their waits, zones or samples are not in the profile\n",
                          FramesAre(static_cast<uint64_t>(parts)));
  }
  if (profile.accounting.frames_dropped != 0) {
    absl::StrAppendFormat(&text, "# %s left out: there was no room for them\n",
                          FramesAre(profile.accounting.frames_dropped));
  }
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

namespace profile {

std::string PartText(const Profile& profile, const FramePart& part) {
  if (part.kind == FramePart::Kind::kPreempted) {
    const uint64_t throttled_ns = part.wait == ProfileSample::kNoWait ? 0 : profile.waits[part.wait].throttled_ns;
    if (throttled_ns == 0) return "preempted: others ran, or a CPU quota was used up";
    return "preempted: a CPU quota (cgroup) was used up for at most " + TimeText(throttled_ns) + " of the longest";
  }
  if (part.kind == FramePart::Kind::kWait) {
    const std::string text =
        part.wait == ProfileSample::kNoWait ? part.name : profile::WaitText(profile, profile.waits[part.wait]);
    return text.empty() ? "waited, for what is not known" : "waited: " + OneLine(text);
  }
  return part.name.empty() ? "ran in no zone" : "ran in " + OneLine(part.name);
}

std::string FrequencyText(const SlowFrame& frame) {
  if (frame.ghz <= 0 || frame.usual_ghz <= 0) return "";
  const double ratio = frame.ghz / frame.usual_ghz;
  if (ratio > 0.95 && ratio < 1.05) return "";
  return absl::StrFormat("the CPU ran at %.2f GHz, usually at %.2f GHz", frame.ghz, frame.usual_ghz);
}

}  // namespace profile

std::string FormatSlowFrame(const Profile& profile, const SlowFrame& frame) {
  std::string text = HeadText(profile, frame) + CausesText(profile, frame);
  const int64_t min_excess_ns = std::max<int64_t>(frame.excess_ns(), 0) / 20;
  int64_t left_ns = frame.excess_ns();
  for (size_t i = 0; i < std::min(frame.parts.size(), kMaxParts); ++i) {
    const FramePart& part = frame.parts[i];
    // Parts are sorted by excess: from here on each explains less than 5 % of the frame's.
    if (part.excess_ns() <= min_excess_ns) break;
    left_ns -= part.excess_ns();
    text += RowText(ChangeText(part.excess_ns()), TimeText(part.ns), TimeText(part.usual_ns), PartText(profile, part));
    text += WhereRow(WhereText(profile, part)) + WhereRow(HolderWhereText(profile, part));
  }
  // The rows sum up to the excess in the headline.
  if (left_ns != 0) text += RowText(ChangeText(left_ns), "", "", "all else");
  if (const std::string ghz = profile::FrequencyText(frame); !ghz.empty()) text += RowText("", "", "", ghz);
  return text + CountTexts(profile, frame) + FaultTexts(profile, frame) + OtherTexts(profile, frame);
}

std::string FormatSlowFrames(const Profile& profile, const SlowFrameOptions& options) {
  if (const absl::Status status = profile.Check(); !status.ok()) return absl::StrFormat("%s\n", status.message());
  const std::vector<SlowFrame> slow = FindSlowFrames(profile, options);
  const auto frames =
      std::count_if(profile.zones.begin(), profile.zones.end(), [](const ProfileZone& zone) { return zone.is_frame; });
  // Others have no times, for want of memory or by KeepFrames.
  const char* const kept = profile.accounting.zones_forgotten != 0 ? " kept" : "";
  std::string text =
      absl::StrFormat("# the %d slowest of %d%s frames\n", slow.size(), frames, kept) + Gaps(profile);
  if (slow.empty()) return text + WhyNone(static_cast<size_t>(frames), options);
  const auto references = std::count_if(profile.zones.begin(), profile.zones.end(),
                                        [](const ProfileZone& zone) { return zone.is_reference; });
  if (references != 0)
    absl::StrAppendFormat(&text, "# usual: as in %d frames that were chosen at random\n", references);
  text += absl::StrFormat("#%13s %12s %12s  %s\n", "more", "here", "usually", "what, and where most of it was");
  for (const SlowFrame& frame : slow) text += "\n" + FormatSlowFrame(profile, frame);
  return text;
}

}  // namespace perfkit
