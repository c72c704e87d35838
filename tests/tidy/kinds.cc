// Checks that test cases which have to do with time say of what kind they are: [law] or [measurement]
// (docs/testing-perfkit.md).
//
// A test case has to do with time if it, or a function or class that it uses, names a clock, a sleep, a wait with a
// timeout, a timer, or work for a time. Names are those of the test's file and of the headers of tests/ that it
// includes; of several functions with one name, each counts. Too many are found rather than too few: a tag more does no
// harm.
#include <array>
#include <map>
#include <regex>
#include <set>

#include "tests/tidy/declarations.h"
#include "tests/tidy/rules.h"

namespace perfkit::tidy {
namespace {

constexpr std::array<std::string_view, 29> kTimes = {"ClockNs",
                                                     "NowNs",
                                                     "Sleep",
                                                     "SleepFor",
                                                     "Spin",
                                                     "SpinningThread",
                                                     "alarm",
                                                     "clock_gettime",
                                                     "poll",
                                                     "ppoll",
                                                     "epoll_wait",
                                                     "nanosleep",
                                                     "clock_nanosleep",
                                                     "usleep",
                                                     "sleep",
                                                     "sleep_for",
                                                     "wait_for",
                                                     "ru_utime",
                                                     "ru_stime",
                                                     "setitimer",
                                                     "timer_create",
                                                     "timerfd_create",
                                                     "sleep_until",
                                                     "wait_until",
                                                     "steady_clock",
                                                     "system_clock",
                                                     "gettimeofday",
                                                     "try_lock_for",
                                                     "high_resolution_clock"};
constexpr std::string_view kHelper = "HoldsOnceInThree", kLaw = "[law]", kMeasurement = "[measurement]";

using Kind = Declaration::Kind;
using WordSet = std::set<std::string, std::less<>>;

// A function, a class, or a test case.
struct Definition {
  std::string name;
  size_t begin;  // Its offset.
  WordSet words;   // Those in it, without names that a value is assigned to.
};
using Definitions = std::vector<Definition>;

bool IsInWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

WordSet WordsOf(std::string_view code) {
  WordSet words;
  for (size_t at = 0; at < code.size();) {
    const size_t begin = at;
    while (at < code.size() && IsInWord(code[at])) ++at;
    const std::string_view rest = code.substr(at);
    const bool is_assigned = rest.starts_with(" = ");
    if (at > begin && !is_assigned) words.emplace(code.substr(begin, at - begin));
    at += at == begin ? 1 : 0;
  }
  return words;
}

std::string NameOf(std::string_view head, Kind kind) {
  static const std::regex kFunction(R"((\w+)\s*\()"), kClass(R"(\b(?:class|struct|union)\s+(\w+))");
  std::match_results<std::string_view::const_iterator> match;
  const std::regex& pattern = kind == Kind::kClass ? kClass : kFunction;
  return std::regex_search(head.begin(), head.end(), match, pattern) ? match[1].str() : "";
}

void AddDefinitions(std::string_view code, size_t begin, size_t end, Definitions& found) {
  for (const Declaration& declaration : Declarations(code, begin, end)) {
    if (declaration.body_begin == 0 || declaration.kind == Kind::kOther) continue;
    if (declaration.kind == Kind::kNamespace) AddDefinitions(code, declaration.body_begin, declaration.body_end, found);
    if (declaration.kind != Kind::kClass && declaration.kind != Kind::kFunction) continue;
    const std::string_view text = code.substr(declaration.begin, declaration.end - declaration.begin);
    const std::string_view head = text.substr(0, declaration.body_begin - 1 - declaration.begin);
    found.push_back({NameOf(head, declaration.kind), declaration.begin, WordsOf(text)});
  }
}

class Tests {
 public:
  explicit Tests(const Tree& tree) {
    for (const SourceFile& file : tree) {
      if (!IsCpp(file) || !IsIn(file, "tests") || IsIn(file, "tests/tidy")) continue;
      files_[file.path] = &file;
      const std::string code = Skeleton(file.text);
      AddDefinitions(code, 0, code.size(), definitions_[file.path]);
    }
  }

  Findings Check() const {
    Findings findings;
    for (const auto& [path, file] : files_) CheckFile(*file, findings);
    return findings;
  }

 private:
  void CheckFile(const SourceFile& file, Findings& findings) const {
    std::set<std::string> group;
    AddIncluded(file.path, group);
    const WordSet timed = Using(group, WordSet(kTimes.begin(), kTimes.end())),
                measuring = Using(group, {std::string(kHelper)});
    for (const Definition& test : definitions_.at(file.path)) {
      if (test.name != "TEST_CASE") continue;
      const std::string_view text = std::string_view(file.text).substr(test.begin);
      const std::string_view head = text.substr(0, text.find('{'));
      const bool law = head.find(kLaw) != head.npos, measurement = head.find(kMeasurement) != head.npos;
      const bool measures = Uses(test, measuring);
      const auto find = [&](std::string message) {
        findings.push_back({file.path, LineAt(file.text, test.begin), std::move(message)});
      };
      if (law && measurement) find("a test case is a [law] or a [measurement], not both");
      if (!law && !measurement && (measures || Uses(test, timed))) {
        find("a test case that has to do with time says [law] or [measurement]");
      }
      if (measurement && !measures) find("a [measurement] fails only three times in three: testing::HoldsOnceInThree");
      if (law && measures) find("a [law] holds each time, without testing::HoldsOnceInThree");
    }
  }

  // Adds `path` and all headers of tests/ that it includes.
  void AddIncluded(const std::string& path, std::set<std::string>& group) const {
    const auto file = files_.find(path);
    if (file == files_.end() || !group.insert(path).second) return;
    for (const Include& include : Includes(*file->second)) {
      AddIncluded(include.what.substr(1, include.what.size() - 2), group);
    }
  }

  static bool Uses(const Definition& definition, const WordSet& names) {
    for (const std::string& word : definition.words) {
      if (word != definition.name && names.contains(word)) return true;
    }
    return false;
  }

  // Returns `names` and the names of all that uses them, in these files.
  WordSet Using(const std::set<std::string>& group, WordSet names) const {
    for (size_t before = 0; before != names.size();) {
      before = names.size();
      for (const std::string& path : group) {
        for (const Definition& definition : definitions_.at(path)) {
          if (definition.name != "TEST_CASE" && Uses(definition, names)) names.insert(definition.name);
        }
      }
    }
    names.erase("");
    return names;
  }

  std::map<std::string, const SourceFile*> files_;
  std::map<std::string, Definitions> definitions_;
};

}  // namespace

Findings CheckKinds(const Tree& tree) { return Tests(tree).Check(); }

}  // namespace perfkit::tidy
