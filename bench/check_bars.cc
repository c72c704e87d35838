// Runs count_bench, holds its cases to their bars, and writes docs/performance.md.
//
//   count_bench ── JSON ──> results.cc ──> bars.cc ──> report.cc ──> the terminal, docs/performance.md
//
// Exit code: 0 all bars hold, 1 one does not (or a name is missing), 2 it could not be found out.
#include <absl/strings/str_format.h>
#include <sys/wait.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "bench/check/bars.h"
#include "bench/check/report.h"
#include "bench/check/results.h"

namespace {

constexpr char kUsage[] =
    "usage: check_bars [--repetitions N] [--min-time SECONDS] [--write PAGE] [--names] [--adapter]\n"
    "\n"
    "Runs count_bench, which lies beside this program, and compares its cases with their bars.\n"
    "--write    also writes the results as a page\n"
    "--names    runs each case for a moment, only to see that all names of the contract are there\n"
    "--adapter  runs adapter_bench instead; it has no page\n";

struct Options {
  bench::Method method{.repetitions = 21, .min_seconds = 0.03};
  std::string page;
  bool names = false;
  bool adapter = false;
};

template <class T>
bool ParseNumber(std::string_view text, T* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size() && *number > 0;
}

bool ParseOptions(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const std::string_view value = i + 1 < argc ? argv[i + 1] : "";
    if (word == "--names") {
      options->names = true;
      options->method = {.repetitions = 1, .min_seconds = 1e-5};
      continue;
    }
    if (word == "--adapter") {
      // Two short cases and a bar of a hundredth: many small samples, so that a burst of other work hits both alike.
      if (!options->names) options->method = {.repetitions = 801, .min_seconds = 0.002};
      options->adapter = true;
      continue;
    }
    const bool known = (word == "--repetitions" && ParseNumber(value, &options->method.repetitions)) ||
                       (word == "--min-time" && ParseNumber(value, &options->method.min_seconds)) ||
                       (word == "--write" && !value.empty());
    if (!known) return false;
    if (word == "--write") options->page = value;
    ++i;
  }
  return !(options->adapter && !options->page.empty());
}

std::optional<bench::Results> RunBenchmark(const char* program, const bench::Method& method) {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command = absl::StrFormat(
      "'%s' --benchmark_format=json --benchmark_enable_random_interleaving=true --benchmark_repetitions=%d "
      "--benchmark_min_time=%g",
      (self.parent_path() / program).string(), method.repetitions, method.min_seconds);
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::string json;
  std::array<char, 4096> buffer;
  while (const size_t got = fread(buffer.data(), 1, buffer.size(), pipe)) json.append(buffer.data(), got);
  if (pclose(pipe) != 0) return std::nullopt;
  return bench::ParseResults(json);
}

// Names every case of the contract that the run did not have, and every one that could not be measured here.
bool AllThere(const bench::Results& results, std::span<const char* const> names) {
  bool all = true;
  for (const char* name : names) {
    const auto found = results.find(name);
    if (found == results.end()) {
      std::printf("there is no case %s\n", name);
      all = false;
    } else if (!found->second.error.empty()) {
      std::printf("SKIPPED: %s: %s\n", name, found->second.error.c_str());
    }
  }
  return all;
}

int Check(const Options& options) {
  const char* const program = options.adapter ? "adapter_bench" : "count_bench";
  const std::optional<bench::Results> results = RunBenchmark(program, options.method);
  if (!results) {
    std::fprintf(stderr, "check_bars: %s did not run to its end\n", program);
    return 2;
  }
  const bool all_there = AllThere(*results, options.adapter ? bench::AdapterNames() : bench::ContractNames());
  if (options.names) return all_there ? 0 : 1;
  const std::vector<bench::Judged> judged =
      bench::Judge(*results, options.adapter ? bench::AdapterBars() : bench::Bars());
  std::fputs(bench::FormatBars(judged).c_str(), stdout);
  if (!options.page.empty()) {
    std::ofstream file(options.page);
    if (!(file << bench::FormatPage(*results, judged, options.method)).flush()) {
      std::fprintf(stderr, "check_bars: cannot write %s\n", options.page.c_str());
      return 2;
    }
  }
  bool all_hold = all_there;
  for (const bench::Judged& one : judged) all_hold = all_hold && one.holds();
  return all_hold ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!ParseOptions(argc, argv, &options)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  return Check(options);
}
