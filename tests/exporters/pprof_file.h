// Files in pprof's format, decoded by hand (wire.h), and what they have to say.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "tests/exporters/gunzip.h"
#include "tests/exporters/totals.h"
#include "tests/exporters/wire.h"

namespace perfkit::testing {

// A file, decoded: its tables by their IDs.
class PprofFile {
 public:
  explicit PprofFile(const std::string& file) {
    const std::optional<std::string> content = Gunzip(file);
    REQUIRE(content.has_value());
    const std::optional<WireMessage> message = ParseWire(*content);
    REQUIRE(message.has_value());
    file_ = *message;
    for (const WireMessage::Value& value : file_.fields[6]) strings.push_back(value.bytes);
    for (const WireMessage& mapping : file_.Messages(3)) Add(mappings, mapping);
    for (const WireMessage& location : file_.Messages(4)) Add(locations, location);
    for (const WireMessage& function : file_.Messages(5)) Add(functions, function);
    for (const uint64_t comment : file_.Numbers(13)) comments.push_back(strings.at(comment));
  }

  std::vector<std::string> SampleTypes() const {
    std::vector<std::string> types;
    for (const WireMessage& type : file_.Messages(1)) {
      types.push_back(strings.at(type.Number(1)) + "/" + strings.at(type.Number(2)));
    }
    return types;
  }

  std::string LocationText(uint64_t id) const {
    const WireMessage& location = locations.at(id);
    const uint64_t mapping = location.Number(2);
    std::string text = mapping == 0 ? "  " : Str(mappings.at(mapping), 5) + " " + Str(mappings.at(mapping), 6) + " ";
    text += absl::StrFormat("%x", location.Number(3));
    for (const WireMessage& line : location.Messages(4)) {
      const WireMessage& function = functions.at(line.Number(1));
      text += ", " + CallText(Str(function, 2), Str(function, 4), line.Number(2));
    }
    return text;
  }

  std::string Key(const WireMessage& sample) const {
    std::map<std::string, std::string> labels;
    for (const WireMessage& label : sample.Messages(3)) {
      const std::string key = strings.at(label.Number(1));
      CHECK(!labels.contains(key));
      labels[key] = label.has(2) ? Str(label, 2) : std::to_string(label.Number(3));
    }
    std::string text;
    for (const auto& [key, value] : labels) text += key + "=" + value + " ";
    for (const uint64_t id : sample.Numbers(1)) text += " | " + LocationText(id);
    return text;
  }

  SampleTotals Totals() const {
    SampleTotals totals;
    for (const WireMessage& sample : file_.Messages(2)) {
      std::vector<int64_t> values;
      for (const uint64_t value : sample.Numbers(2)) values.push_back(static_cast<int64_t>(value));
      CHECK(values.size() == SampleTypes().size());
      std::vector<int64_t>& sums = totals[Key(sample)];  // stacks with guesses at different calls look the same
      sums.resize(values.size());
      for (size_t i = 0; i < values.size(); ++i) sums[i] += values[i];
    }
    return totals;
  }

  const WireMessage& file() const { return file_; }

  std::vector<std::string> strings, comments;
  std::map<uint64_t, WireMessage> mappings, locations, functions;

 private:
  void Add(std::map<uint64_t, WireMessage>& table, const WireMessage& entry) {
    CHECK(entry.Number(1) != 0);
    CHECK(table.emplace(entry.Number(1), entry).second);
  }
  std::string Str(const WireMessage& message, uint32_t field) const { return strings.at(message.Number(field)); }

  WireMessage file_;
};

inline std::string WaitOf(const Profile& profile, const ProfileSample& sample) {
  if (sample.wait == ProfileSample::kNoWait) return "";
  const ProfileWait& wait = profile.waits[sample.wait];
  if (wait.preempted) return "preempted";
  if (wait.detail != 0) return profile.strings[wait.detail];
  return wait.blocked_in_syscall ? "syscall " + std::to_string(wait.syscall) : "";
}

// The names of the zones, or of the frames, that were open at a sample, the outermost first.
inline std::string OpenNames(const Profile& profile, const ProfileSample& sample, bool frames,
                             std::string_view separator) {
  std::vector<const ProfileZone*> open;
  for (const ProfileZone& zone : profile.zones) {
    const bool is_open = zone.from_ns <= sample.time_ns && sample.time_ns < zone.to_ns;
    if (zone.thread == sample.thread && zone.is_frame == frames && is_open) open.push_back(&zone);
  }
  std::stable_sort(open.begin(), open.end(), [](const ProfileZone* a, const ProfileZone* b) {
    return a->from_ns != b->from_ns ? a->from_ns < b->from_ns : a->to_ns > b->to_ns;
  });
  std::string text;
  for (const ProfileZone* const zone : open) {
    text += (text.empty() ? "" : std::string(separator)) + profile.strings[zone->name];
  }
  return text;
}

// The key of a sample as PprofFile::Key has it.
inline std::string PprofKeyOf(const Profile& profile, const ProfileSample& sample) {
  const ProfileThread& thread = profile.threads[sample.thread];
  std::map<std::string, std::string> labels = {
      {"thread", profile.strings[thread.name]}, {"tid", std::to_string(thread.tid)},
      {"pid", std::to_string(thread.pid)},      {"label", profile.strings[sample.label]},
      {"task", profile.strings[sample.task]},   {"stack", std::string(StackQualityName(sample.quality))},
      {"wait", WaitOf(profile, sample)}};
  if (!sample.merged()) {
    labels["zone"] = OpenNames(profile, sample, false, "/");
    labels["frame"] = OpenNames(profile, sample, true, ", ");
    const size_t number = labels["frame"].find("frame ");
    if (number != std::string::npos)
      labels["frame_number"] = std::to_string(std::stoull(labels["frame"].substr(number + 6)));
  }
  int guessed = 0, stitched = 0;
  for (uint32_t at = sample.stack; at != ProfileStack::kRoot; at = profile.stacks[at].parent) {
    guessed += profile.stacks[at].is_guess;
    stitched += profile.stacks[at].is_stitched;
  }
  if (sample.task_number != 0) labels["task_id"] = std::to_string(sample.task_number);
  if (guessed != 0) labels["guessed_calls"] = std::to_string(guessed);
  if (stitched != 0) labels["stitched_calls"] = std::to_string(stitched);
  if (sample.stack != ProfileStack::kRoot) {
    labels["mode"] = profile.locations[profile.stacks[sample.stack].location].kernel ? "kernel" : "user";
  }
  std::string text;
  for (const auto& [key, value] : labels) {
    if (!value.empty()) text += key + "=" + value + " ";
  }
  return text + StackText(profile, sample.stack);
}

// What a file in pprof's format has to say of a profile.
inline SampleTotals PprofTotalsOf(const Profile& profile) {
  SampleTotals totals;
  for (const ProfileSample& sample : profile.samples) {
    if (sample.samples == 0 && sample.weight == 0) continue;
    std::vector<int64_t>& values = totals[PprofKeyOf(profile, sample)];
    values.resize(1 + profile.events.size());
    values[0] += sample.samples;
    values[1 + sample.event] += static_cast<int64_t>(sample.weight);
  }
  return totals;
}

}  // namespace perfkit::testing
