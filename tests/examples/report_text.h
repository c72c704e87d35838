// Reports (perfkit::FormatReport) as the examples print them, read back as numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace perfkit::testing {

// The number that a word of a report is, without the commas between thousands; 0 for "-".
inline uint64_t NumberIn(std::string word) {
  std::erase(word, ',');
  return std::strtoull(word.c_str(), nullptr, 10);
}

// One report: from its table of events to the next report's.
class ReportText {
 public:
  // A line of the table of functions, modules, lines or threads. `name` is all that follows the numbers.
  struct Row {
    double self = 0, total = 0;  // percent
    uint64_t samples = 0;
    std::string name;
  };
  // A line of the call tree. A root has no caller.
  struct Call {
    double total = 0, self = 0;  // percent; bottom up there is no self
    bool is_root = false;
    std::string name;
  };

  // `event`: the report of this event, if the text has several; "": the first one.
  explicit ReportText(const std::string& text, const std::string& event = "") {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) Add(line, event);
    const bool has_branches = !calls_.empty() && IsBranch(calls_[0].name);
    for (size_t i = 0; i < calls_.size(); ++i) calls_[i].is_root = has_branches ? IsBranch(calls_[i].name) : i == 0;
  }

  const std::vector<Row>& rows() const { return rows_; }
  const std::vector<Call>& calls() const { return calls_; }
  // The samples that are 100 % of the table.
  uint64_t samples() const { return samples_; }
  const std::string& head() const { return head_; }  // all but the tables

  uint64_t RowSamples() const {
    uint64_t sum = 0;
    for (const Row& row : rows_) sum += row.samples;
    return sum;
  }
  double RowSelf() const {
    double sum = 0;
    for (const Row& row : rows_) sum += row.self;
    return sum;
  }
  double RootTotal() const {
    double sum = 0;
    for (const Call& call : calls_) sum += call.is_root ? call.total : 0;
    return sum;
  }
  // Of the call tree from the callers down.
  double CallSelf() const {
    double sum = 0;
    for (const Call& call : calls_) sum += call.self;
    return sum;
  }
  // The share of the samples whose stacks are of this quality, in percent.
  double QualityShare(const std::string& quality) const {
    const size_t line = head_.find("# stacks of ");
    const size_t at = head_.find(" % " + quality, line);
    if (line == head_.npos || at == head_.npos || head_.find('\n', line) < at) return 0;
    return std::atof(head_.c_str() + head_.find_last_of(' ', at - 1));
  }

 private:
  enum class Section : uint8_t { kHead, kFlat, kTree, kOther };

  static bool IsBranch(const std::string& name) { return name.starts_with("|-") || name.starts_with("`-"); }

  void Add(const std::string& line, const std::string& event) {
    if (line.find("100 % is ") != line.npos) {
      section_ = line.find(" of " + event) != line.npos && rows_.empty() ? Section::kFlat : Section::kOther;
      std::istringstream words(line.substr(line.rfind(" in ") + 4));
      std::string samples;
      words >> samples;
      if (section_ == Section::kFlat) samples_ = NumberIn(samples);
    } else if (line.starts_with("# call tree of ")) {
      section_ = line.find(" of " + event) != line.npos && calls_.empty() ? Section::kTree : Section::kOther;
      bottom_up_ = !line.ends_with("callers first");
    } else if (line == "# threads" || line.starts_with("# time off")) {
      section_ = Section::kOther;
    } else if (line.starts_with("#")) {
      head_ += line + '\n';
    } else if (section_ == Section::kFlat) {
      AddRow(line);
    } else if (section_ == Section::kTree) {
      AddCall(line);
    }
  }
  void AddRow(const std::string& line) {
    Row row;
    std::istringstream words(line);
    std::string weight, samples;
    if (!(words >> row.self >> row.total >> weight >> samples)) return;
    if (std::isalpha(static_cast<unsigned char>(samples[0])) != 0) words >> samples;  // that was the weight's unit
    row.samples = NumberIn(samples);
    std::getline(words >> std::ws, row.name);
    rows_.push_back(row);
  }
  void AddCall(const std::string& line) {
    const size_t name = bottom_up_ ? 11 : 20;  // where names begin
    if (line.size() <= name || line.find_first_not_of(' ') > 8) return;  // "... 6 calls, each by the one before it"
    Call call{.total = std::atof(line.c_str()), .name = line.substr(name)};
    if (!bottom_up_) call.self = std::atof(line.c_str() + 10);
    calls_.push_back(call);
  }

  Section section_ = Section::kHead;
  bool bottom_up_ = false;
  std::string head_;
  std::vector<Row> rows_;
  std::vector<Call> calls_;
  uint64_t samples_ = 0;
};

}  // namespace perfkit::testing
