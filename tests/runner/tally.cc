// The last test: prints all skips with their reasons, and their number.
//
//   tally NAME=FOLDER...
//
// Each FOLDER contains the files of runner, one for each CTest test, with lines "SKIPPED: test: reason". NAME is that
// of the build. A test that was skipped for the same reason in several builds makes one line with all their names.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace {

constexpr std::string_view kMark = "SKIPPED: ";

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

}  // namespace

int main(int argc, char** argv) {
  Skips skips;
  for (int i = 1; i < argc; ++i) AddFolder(argv[i], skips);
  Print(skips);
  return 0;
}
