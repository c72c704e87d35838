// A Perfetto trace, decoded by hand (wire.h). Numbers of fields: protos/perfetto/trace of github.com/google/perfetto.
#pragma once

#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "tests/exporters/totals.h"
#include "tests/exporters/wire.h"

namespace perfkit::testing {

class PerfettoFile {
 public:
  // "time event samples weight pid/tid label mode quality | calls", root first; the times of a stream whose name says
  // that they are unknown are "?".
  std::multiset<std::string> samples;
  // "track: name from-to annotations"
  std::multiset<std::string> slices;
  // "track: name time"
  std::multiset<std::string> instants;
  // By flow: "track: name time" of its events, in the order of the file.
  std::map<uint64_t, std::vector<std::string>> flows;
  // "track: time value"
  std::vector<std::string> counters;
  std::map<std::string, uint64_t> units;  // of counters, by track
  std::set<std::string> sources, texts;
  std::map<uint64_t, uint64_t> clocks;
  uint64_t trace_clock = 0;

  explicit PerfettoFile(const std::string& file) {
    const std::optional<WireMessage> trace = ParseWire(file);
    REQUIRE(trace.has_value());
    for (const WireMessage& packet : trace->Messages(1)) Read(packet);
    for (const auto& [uuid, open] : open_) CHECK(open.empty());
  }

 private:
  // What a sequence has said so far.
  struct Sequence {
    std::string source, primary;
    std::map<std::pair<uint32_t, uint64_t>, WireMessage> interned;  // by field of InternedData and iid
  };
  struct Open {
    std::string text;
    uint64_t from_ns = 0;
  };

  void Read(const WireMessage& packet) {
    if (packet.has(6)) ReadClocks(packet.Message(6));
    if (!packet.has(13)) return;
    const uint64_t id = packet.Number(10);
    CHECK(sequences_.contains(id) == (packet.Number(13) == 2));  // cleared first, needed afterwards
    Sequence& sequence = sequences_[id];
    if (packet.Number(13) == 1) ReadDefaults(packet.Message(59), sequence);
    for (const auto& [field, values] : packet.Message(12).fields) {
      for (const WireMessage& entry : packet.Message(12).Messages(field)) {
        CHECK(entry.Number(1) != 0);
        CHECK(sequence.interned.emplace(std::pair(field, entry.Number(1)), entry).second);
        texts.insert(entry.Text(2));
      }
    }
    if (packet.has(60)) ReadTrack(packet.Message(60));
    if (packet.has(11)) ReadEvent(packet.Number(8), packet.Message(11), sequence);
    if (packet.has(135)) ReadSample(packet.Number(8), packet.Message(135), sequence);
  }

  void ReadClocks(const WireMessage& snapshot) {
    for (const WireMessage& clock : snapshot.Messages(1)) clocks[clock.Number(1)] = clock.Number(2);
    trace_clock = snapshot.Number(2);
  }

  void ReadDefaults(const WireMessage& defaults, Sequence& sequence) {
    CHECK(defaults.Number(58) == 3);
    sequence.source = defaults.Message(100).Text(1);
    sequence.primary = defaults.Message(100).Message(2).Text(2);
    if (!sequence.source.empty()) CHECK(sources.insert(sequence.source).second);
  }

  void ReadTrack(const WireMessage& track) {
    const uint64_t uuid = track.Number(1);
    std::string name = track.Text(2);
    if (track.has(3)) name = absl::StrFormat("process %d %s", track.Message(3).Number(1), track.Message(3).Text(6));
    if (track.has(4)) {
      const WireMessage thread = track.Message(4);
      name = absl::StrFormat("thread %d/%d %s", thread.Number(1), thread.Number(2), thread.Text(5));
    }
    if (track.has(5)) name = tracks_.at(track.Number(5)) + ", " + name;
    CHECK(tracks_.emplace(uuid, name).second);
    if (track.has(8)) units[name] = track.Message(8).Number(3);
  }

  void ReadEvent(uint64_t time_ns, const WireMessage& event, Sequence& sequence) {
    const uint64_t uuid = event.Number(11);
    const std::string& track = tracks_.at(uuid);
    std::vector<Open>& open = open_[uuid];
    CHECK(std::exchange(last_ns_[uuid], time_ns) <= time_ns);  // readers keep the order of equal times
    for (size_t i = 0; i < event.count(47); ++i) {
      const uint64_t flow = event.fields.at(47)[i].number;
      CHECK(std::exchange(flow_ns_[flow], time_ns) <= time_ns);  // the first event is the flow's begin
      flows[flow].push_back(absl::StrFormat("%s: %s %d", track, event.Text(23), time_ns));
    }
    if (event.Number(9) == 3) {
      instants.insert(absl::StrFormat("%s: %s %d", track, event.Text(23), time_ns));
    } else if (event.Number(9) == 4) {
      counters.push_back(absl::StrFormat("%s: %d %g", track, time_ns, event.Double(44)));
    } else if (event.Number(9) == 1) {
      std::string text = event.has(10) ? sequence.interned.at({2, event.Number(10)}).Text(2) : event.Text(23);
      for (const WireMessage& annotation : event.Messages(4)) {
        text += " " + annotation.Text(10) + "=";
        text += annotation.has(6) ? annotation.Text(6) : std::to_string(annotation.Number(4));
        for (const WireMessage& value : annotation.Messages(12)) text += absl::StrFormat(",%d", value.Number(3));
      }
      open.push_back({text, time_ns});
    } else {
      REQUIRE(event.Number(9) == 2);
      REQUIRE(!open.empty());
      slices.insert(absl::StrFormat("%s: %s %d-%d", track, open.back().text, open.back().from_ns, time_ns));
      open.pop_back();
    }
  }

  void ReadSample(uint64_t time_ns, const WireMessage& sample, Sequence& sequence) {
    const WireMessage task = sample.Message(1);
    std::string text = absl::StrFormat("%d/%d", task.Number(2), task.Number(3));
    if (task.has(4)) {
      const WireMessage& context = sequence.interned.at({51, task.Number(4)});
      text += " " + context.Text(3) + "=" + context.Text(2);
    }
    if (sample.has(3)) text += sample.Message(3).Number(3) == 2 ? " kernel" : " user";
    text += " " + (sample.has(7) ? sample.Text(7) : "whole") + " ";
    if (sample.has(6)) text += CallstackText(sequence.interned.at({7, sample.Number(6)}), sequence);
    const std::string time = sequence.source.ends_with(".times-unknown") ? "?" : std::to_string(time_ns);
    const std::vector<uint64_t> iids = sample.Numbers(13), weights = sample.Numbers(14);
    REQUIRE(iids.size() == weights.size());
    uint64_t count = 1;
    for (size_t i = 0; i < iids.size(); ++i) {
      const std::string name = sequence.interned.at({50, iids[i]}).Text(2);
      if (name == "samples") count = weights[i];
      if (name != "samples") samples.insert(absl::StrFormat("%s %s 0 %d %s", time, name, weights[i], text));
    }
    samples.insert(absl::StrFormat("%s %s %d %d %s", time, sequence.primary, count, sample.Number(11), text));
  }

  std::string CallstackText(const WireMessage& callstack, Sequence& sequence) {
    std::string text;
    for (const uint64_t id : callstack.Numbers(2)) {
      const WireMessage& frame = sequence.interned.at({6, id});
      text += " | ";
      if (frame.has(3)) {
        CHECK(frame.has(4));
        const WireMessage& mapping = sequence.interned.at({19, frame.Number(3)});
        if (mapping.has(7)) text += sequence.interned.at({17, mapping.Number(7)}).Text(2) + " ";
        if (mapping.has(2)) text += Hex(sequence.interned.at({16, mapping.Number(2)}).Text(2)) + " ";
        text += absl::StrFormat("%x ", frame.Number(4));
      }
      const std::string file = frame.has(5) ? sequence.interned.at({18, frame.Number(5)}).Text(2) : "";
      text += CallText(sequence.interned.at({5, frame.Number(2)}).Text(2), file, frame.Number(6));
      text += frame.Number(7) == 2 ? " kernel" : " native";
    }
    return text;
  }

  static std::string Hex(const std::string& bytes) {
    std::string text;
    for (const char byte : bytes) text += absl::StrFormat("%02x", static_cast<unsigned char>(byte));
    return text;
  }

  std::map<uint64_t, Sequence> sequences_;
  std::map<uint64_t, std::string> tracks_;
  std::map<uint64_t, std::vector<Open>> open_;
  std::map<uint64_t, uint64_t> last_ns_, flow_ns_;
};

}  // namespace perfkit::testing
