// The last test: prints all skips with their reasons, and their number; then where the time went. With --failures FOLDER
// it prints what the tests there that failed have said, and fails if there are any.
//
//   tally [--build NINJA_LOG] [--page FILE] NAME=FOLDER...
//   tally --failures FOLDER
//
// Each FOLDER contains the files of runner, one for each CTest test, with lines "SKIPPED: test: reason" and a line of
// times. NAME is that of the build. A test that was skipped for the same reason in several builds makes one line with
// all their names. The times are those of the first FOLDER, whose tests run the others', and of the build that wrote
// NINJA_LOG. In FILE, docs/testing-perfkit.md, they replace what is between the two lines of kBegin and kEnd.
#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

constexpr std::string_view kMark = "SKIPPED: ", kFailureMark = "FAILURE: ";
constexpr double kLong_s = 3;  // Tests that take less are only summed.

struct Skip {
  std::string reason, test;
  auto operator<=>(const Skip&) const = default;
};

using Skips = std::map<Skip, std::set<std::string>>;  // The builds in which each skip happened.

void AddFile(const std::filesystem::path& path, const std::string& build, Skips& skips) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(kMark)) continue;
    line.erase(0, kMark.size());
    const size_t colon = std::min(line.find(": "), line.size());
    const std::string reason = colon < line.size() ? line.substr(colon + 2) : "(no reason given)";
    const std::string program = path.stem().string();
    const std::string whole = program.substr(0, program.find('@'));
    const std::string who = program.size() > whole.size() ? " as uid " + program.substr(whole.size() + 1) : "";
    skips[{reason, whole + ": " + line.substr(0, colon)}].insert(build + who);
  }
}

void AddFolder(std::string_view argument, Skips& skips) {
  const size_t equals = std::min(argument.find('='), argument.size() - 1);
  const std::filesystem::path folder = argument.substr(equals + 1);
  std::error_code none;  // A build that has not run has no folder.
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    AddFile(entry.path(), std::string(argument.substr(0, equals)), skips);
  }
}

void Print(const Skips& skips) {
  size_t runs = 0;
  std::set<std::string> reasons;
  for (const auto& [skip, builds] : skips) {
    if (reasons.insert(skip.reason).second) std::printf("skipped because %s:\n", skip.reason.c_str());
    std::printf("    %s [", skip.test.c_str());
    for (const char* comma = ""; const std::string& build : builds) {
      std::printf("%s%s", comma, build.c_str());
      comma = ", ";
    }
    std::printf("]\n");
    runs += builds.size();
  }
  std::printf("skips: %zu tests in %zu runs, for %zu reasons\n", skips.size(), runs, reasons.size());
}

// Prints the failures that are noted in `folder`. Returns their number.
int PrintFailures(const std::string& folder) {
  int failed = 0;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    std::ifstream file(entry.path());
    bool is_first = true;
    for (std::string line; std::getline(file, line);) {
      if (!line.starts_with(kFailureMark)) continue;
      if (is_first) std::printf("%s\n", entry.path().stem().c_str());
      failed += is_first;
      is_first = false;
      std::printf("    %s\n", line.c_str() + kFailureMark.size());
    }
  }
  std::printf("failures: %d tests\n", failed);
  return failed;
}

struct Times {
  double cpu_s = 0;
  double elapsed_s = 0;
};

using NamedTimes = std::vector<std::pair<std::string, Times>>;

// Returns the times of each test whose file is in `folder`, longest first.
NamedTimes ReadTimes(const std::string& folder) {
  NamedTimes times;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      Times read;
      if (std::sscanf(line.c_str(), "TIMES: %lf %lf", &read.cpu_s, &read.elapsed_s) == 2) {
        times.emplace_back(entry.path().stem().string(), read);
      }
    }
  }
  std::sort(times.begin(), times.end(), [](const auto& a, const auto& b) { return a.second.cpu_s > b.second.cpu_s; });
  return times;
}

// Returns the sum of the times of all commands in a log of ninja: CPU-seconds, if each had a CPU for itself. A command
// with several results has one line for each; of a command that ran again, the last counts.
double BuildSeconds(const std::string& path) {
  std::map<std::string, std::pair<int64_t, int64_t>> spans;  // By result: start and end, ms.
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    int64_t start = 0, end = 0;
    char result[4096];
    if (std::sscanf(line.c_str(), "%" SCNd64 " %" SCNd64 " %*s %4095s", &start, &end, result) == 3) {
      spans[result] = {start, end};
    }
  }
  std::set<std::pair<int64_t, int64_t>> commands;
  for (const auto& [result, span] : spans) commands.insert(span);
  int64_t sum_ms = 0;
  for (const auto& [start, end] : commands) sum_ms += end - start;
  return static_cast<double>(sum_ms) * 1e-3;
}

// Returns the group of a test: "unit tests", or what its name begins with, as "leg.address" or "pmu".
std::string GroupOf(const std::string& test) {
  const size_t dot = test.find('.');
  if (dot != std::string::npos) return test.substr(0, test.starts_with("leg.") ? test.find('.', dot + 1) : dot);
  if (test.ends_with("_test")) return "unit tests";
  return test.ends_with("_test@user") ? "unit tests as an ordinary user" : "other";
}

std::string Row(const std::string& name, const Times& times) {
  char row[256];
  std::snprintf(row, sizeof(row), "| %s | %.0f | %.0f |\n", name.c_str(), times.cpu_s, times.elapsed_s);
  return row;
}

// Returns the times as tables of Markdown: groups with their sums, then single tests.
std::string TimesTables(const NamedTimes& tests, double build_s) {
  std::map<std::string, Times> groups;
  Times total{build_s, 0};
  std::string rows;
  for (const auto& [name, times] : tests) {
    for (Times* sum : {&groups[GroupOf(name)], &total}) {
      sum->cpu_s += times.cpu_s;
      sum->elapsed_s += times.elapsed_s;
    }
    if (std::max(times.cpu_s, times.elapsed_s) >= kLong_s) rows += Row("`" + name + "`", times);
  }
  constexpr std::string_view kHead = " | CPU-seconds | elapsed, seconds |\n|---|---:|---:|\n";
  std::string page = "| part" + std::string(kHead) + "| build of all (`cmake --build --preset test`) | " +
                     std::to_string(static_cast<int>(build_s)) + " | |\n";
  NamedTimes sorted(groups.begin(), groups.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second.cpu_s > b.second.cpu_s; });
  for (const auto& [name, times] : sorted) page += Row(name, times);
  return page + Row("all", total) + "\n| test" + std::string(kHead) + rows;
}

constexpr std::string_view kBegin = "<!-- times -->\n";
constexpr std::string_view kEnd = "<!-- end of times -->\n";

// Replaces the tables in the page at `path`. Returns false if it has no place for them, or cannot be written.
bool WritePage(const std::string& path, const std::string& tables) {
  std::stringstream page;
  page << std::ifstream(path).rdbuf();
  std::string text = page.str();
  const size_t begin = text.find(kBegin), end = text.find(kEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin) return false;
  text.replace(begin + kBegin.size(), end - begin - kBegin.size(), tables);
  return static_cast<bool>(std::ofstream(path) << text << std::flush);
}

}  // namespace

int main(int argc, char** argv) {
  std::string page_path;
  double build_s = 0;
  int first = 1;
  for (; first + 1 < argc && std::string_view(argv[first]).starts_with("--"); first += 2) {
    if (std::string_view(argv[first]) == "--failures") return PrintFailures(argv[first + 1]) == 0 ? 0 : 1;
    if (std::string_view(argv[first]) == "--page") page_path = argv[first + 1];
    if (std::string_view(argv[first]) == "--build") build_s = BuildSeconds(argv[first + 1]);
  }
  Skips skips;
  for (int i = first; i < argc; ++i) AddFolder(argv[i], skips);
  Print(skips);
  if (first == argc) return 0;
  const std::string main_folder = argv[first];
  const std::string tables = TimesTables(ReadTimes(main_folder.substr(main_folder.find('=') + 1)), build_s);
  std::printf("\n%s", tables.c_str());
  if (page_path.empty() || WritePage(page_path, tables)) return 0;
  std::printf("tally: cannot write the tables into %s\n", page_path.c_str());
  return 1;
}
