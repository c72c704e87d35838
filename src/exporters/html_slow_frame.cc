// Parts, spans, waits and references of a slow frame as JSON. Spans come from CutFrame, which splits time as
// FindSlowFrames does, so that the page's sums are the frame's parts to the nanosecond. 64-bit arguments of system
// calls are text: numbers of JavaScript are exact to 2^53 only.
#include "src/exporters/html_slow_frame.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "src/exporters/arrows.h"
#include "src/exporters/frame_gaps.h"
#include "src/profile/faulted_memory.h"
#include "src/profile/part_text.h"
#include "src/profile/text_table.h"
#include "src/profile/wait_text.h"

namespace perfkit::exporters {
namespace {

using profile::FrameCut;
using profile::FrameSpan;

// Returns -1 for an index that means none.
int64_t Signed(uint32_t index) { return index == UINT32_MAX ? -1 : int64_t{index}; }

constexpr std::string_view KindName(FramePart::Kind kind) {
  return kind == FramePart::Kind::kZone ? "zone" : kind == FramePart::Kind::kWait ? "wait" : "preempted";
}

void WriteParts(const FrameCut& cut, JsonWriter& json) {
  json.Key("parts").BeginArray();
  for (const FramePart& part : cut.frame.parts) {
    json.BeginObject().Member("kind", KindName(part.kind)).Member("name", part.name);
    json.Member("text", profile::PartText(cut.profile, part)).Member("ns", part.ns).Member("usual", part.usual_ns);
    json.Member("stack", Signed(part.stack)).Member("quality", StackQualityName(part.quality));
    json.Member("wait", Signed(part.wait)).Member("samples", part.samples);
    json.Member("samples_of_stack", part.samples_of_stack).EndObject();
  }
  json.EndArray().Key("counts").BeginArray();
  for (const FrameCount& count : cut.frame.counts) {
    json.BeginObject().Member("name", count.name).Member("value", count.value).Member("usual", count.usual);
    json.Member("stack", Signed(count.stack)).Member("at_stack", count.at_stack).EndObject();
  }
  json.EndArray().Key("faults").BeginArray();
  for (const FaultedMemory& faults : profile::ToldFaults(cut.frame)) {
    json.BeginObject().Member("text", profile::FaultText(cut.profile, faults)).Member("faults", faults.faults);
    json.Member("stack", Signed(faults.stack)).Member("at_stack", faults.at_stack).EndObject();
  }
  json.EndArray();
}

// Returns the index of the part of the frame that a cause explains; -1 if it explains no part, or several.
int64_t PartOf(const FrameCut& cut, const FrameCause& cause) {
  FramePart part{.name = cause.what};
  if (cause.kind == FrameCause::Kind::kPreempted || cause.kind == FrameCause::Kind::kThrottled) {
    part = {.kind = FramePart::Kind::kPreempted, .name = ""};
  } else if (cause.wait != ProfileSample::kNoWait) {
    part.kind = FramePart::Kind::kWait;
    part.name = profile::WaitKind(cut.profile, cut.profile.waits[cause.wait]);
  } else if (cause.kind != FrameCause::Kind::kMoreWork && cause.kind != FrameCause::Kind::kPageFaults &&
             cause.kind != FrameCause::Kind::kStolen) {
    return -1;
  }
  const auto& parts = cut.frame.parts;
  const auto found = std::find_if(parts.begin(), parts.end(),
                                  [&](const FramePart& one) { return one.kind == part.kind && one.name == part.name; });
  return found == parts.end() ? -1 : found - parts.begin();
}

void WriteCauses(const FrameCut& cut, JsonWriter& json) {
  json.Key("causes").BeginArray();
  for (const FrameCause& cause : cut.frame.causes) {
    json.BeginObject().Member("kind", FrameCauseKindName(cause.kind)).Member("share", cause.share_ns);
    json.Member("confidence", FrameCauseConfidenceName(cause.confidence));
    json.Member("text", profile::OneLine(FormatFrameCause(cut.profile, cause)));
    json.Member("remedy", cause.remedy).Member("part", PartOf(cut, cause)).Member("wait", Signed(cause.wait));
    json.Member("stack", Signed(cause.stack)).Member("quality", StackQualityName(cause.quality));
    json.Member("thread", Signed(cause.thread)).Member("thread_stack", Signed(cause.thread_stack));
    json.Member("thread_quality", StackQualityName(cause.thread_quality)).Member("thread_zone", cause.thread_zone);
    json.EndObject();
  }
  json.EndArray();
}

void WriteWaits(const Profile& profile, JsonWriter& json) {
  json.Key("waits").BeginArray();
  for (const ProfileWait& wait : profile.waits) {
    json.BeginObject().Member("holder", Signed(wait.holder)).Member("holder_stack", Signed(wait.holder_stack));
    json.Member("holder_quality", StackQualityName(wait.holder_quality));
    json.Member("waker", wait.waker);
    if (wait.blocked_in_syscall) {
      json.Member("syscall", wait.syscall).Key("arguments").BeginArray();
      for (const uint64_t argument : wait.arguments) json.String(absl::StrFormat("%#x", argument));
      json.EndArray();
    }
    json.EndObject();
  }
  json.EndArray().Key("arrows").BeginArray();
  for (const Arrow& arrow : FindArrows(profile)) {
    json.BeginObject().Member("kind", arrow.kind == Arrow::Kind::kHeld ? "held" : "woke");
    json.Member("from", arrow.from).Member("to", arrow.to).Member("sample", arrow.sample);
    json.Member("at", static_cast<int64_t>(arrow.at_ns - profile.from_ns)).EndObject();
  }
  json.EndArray();
}

// Writes "spans": for each thread three columns, with the index of each span in "span_parts", its sample and its
// length. Then writes "span_parts": kinds and names, and for each the index of the frame's part of that name, or -1.
void WriteSpans(const FrameCut& cut, JsonWriter& json) {
  json.Key("spans").BeginArray();
  for (const std::vector<FrameSpan>& spans : cut.spans) {
    const auto column = [&](std::string_view name, auto&& value) {
      json.Key(name).BeginArray();
      for (const FrameSpan& span : spans) json.Value(value(span));
      json.EndArray();
    };
    json.BeginObject();
    column("part", [](const FrameSpan& span) { return Signed(span.part); });
    column("sample", [](const FrameSpan& span) { return Signed(span.sample); });
    column("ns", [](const FrameSpan& span) { return span.ns; });
    json.EndObject();
  }
  json.EndArray().Key("span_parts").BeginArray();
  for (uint32_t i = 0; i < cut.names.size(); ++i) {
    const auto& parts = cut.frame.parts;
    const auto part = std::find_if(parts.begin(), parts.end(), [&](const FramePart& one) {
      return one.kind == cut.names[i].kind && one.name == cut.names[i].text;
    });
    json.BeginObject().Member("kind", KindName(cut.names[i].kind)).Member("name", cut.names[i].text);
    json.Member("part", part == parts.end() ? int64_t{-1} : part - parts.begin()).EndObject();
  }
  json.EndArray();
}

void WriteReferences(const FrameCut& cut, JsonWriter& json) {
  const auto relative = [&](uint64_t time_ns) { return static_cast<int64_t>(time_ns - cut.profile.from_ns); };
  json.Member("compared", cut.compared).Key("references").BeginArray();
  for (const FrameCut::Time& time : cut.references) {
    json.BeginArray().Value(relative(time.from_ns)).Value(relative(time.to_ns)).EndArray();
  }
  json.EndArray().Member("from", relative(cut.from_ns));
}

}  // namespace

void WriteHtmlSlowFrame(const FrameCut& cut, JsonWriter& json) {
  const ProfileZone& zone = cut.profile.zones[cut.frame.zone];
  json.Key("slow").BeginObject().Member("zone", cut.frame.zone).Member("thread", zone.thread);
  json.Member("headline", cut.text.substr(0, cut.text.find('\n')));
  json.Member("reason", profile::OneLine(cut.profile.strings[zone.reason]));
  json.Member("state", profile::OneLine(cut.profile.strings[zone.state]));
  json.Member("worst_by", profile::OneLine(cut.profile.strings[zone.worst_by]));
  json.Member("ns", cut.frame.ns).Member("usual", cut.frame.usual_ns).Member("rest", cut.frame.rest_ns);
  json.Member("frequency", profile::FrequencyText(cut.frame));
  WriteParts(cut, json);
  WriteCauses(cut, json);
  WriteSpans(cut, json);
  WriteWaits(cut.profile, json);
  WriteReferences(cut, json);
  json.Key("gaps").BeginArray();
  for (const std::string& gap : FrameGaps(cut)) json.String(gap);
  json.EndArray().EndObject();
}

}  // namespace perfkit::exporters
