// A file in pprof's format, decoded by hand (wire.h).
#pragma once

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

}  // namespace perfkit::testing
