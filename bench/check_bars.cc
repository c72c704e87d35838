// Runs the benchmarks, compares their cases with their bars, and writes docs/performance.md.
//
//   X_bench ── JSON ──> results.cc ──> bars.cc ──> report.cc ──> the terminal, docs/performance.md
//
// Exit code: 0 if all bars hold, 1 if one does not (or a name is missing), 2 if it could not be found out.
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
    "usage: check_bars [--only PROGRAM] [--repetitions N] [--min-time SECONDS] [--write PAGE] [--names]\n"
    "\n"
    "Runs the benchmarks, which lie beside this program, and compares their cases with their bars.\n"
    "--only   runs one of them: count_bench, ring_bench, sample_bench, session_bench, frame_bench,\n"
    "         lock_bench, symbolize_bench, unwind_bench, adapter_bench\n"
    "--write  also writes the results as a page: without any other option\n"
    "--names  runs each case for a moment, only to see that all names of the contract are there\n";

struct Options {
  bench::Method method;  // Members that are not 0 override a suite's own.
  std::string_view only;
  std::string page;
  bool names = false;
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
    const bool known = (word == "--repetitions" && ParseNumber(value, &options->method.repetitions)) ||
                       (word == "--min-time" && ParseNumber(value, &options->method.min_seconds)) ||
                       ((word == "--write" || word == "--only") && !value.empty());
    if (!known) return false;
    if (word == "--write") options->page = value;
    if (word == "--only") options->only = value;
    ++i;
  }
  // Only a full run, with each suite's own method, writes the page.
  const bool usual = options->method.repetitions == 0 && options->method.min_seconds == 0 && options->only.empty();
  return options->page.empty() || usual;
}

std::optional<bench::Results> RunBenchmark(const bench::Suite& suite, const bench::Method& method, bool full) {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command = absl::StrFormat(
      "'%s' --benchmark_format=json --benchmark_enable_random_interleaving=true --benchmark_repetitions=%d "
      "--benchmark_min_time=%g %s",
      (self.parent_path() / suite.program).string(), method.repetitions, method.min_seconds,
      full ? suite.arguments : "");
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::string json;
  std::array<char, 4096> buffer;
  while (const size_t got = fread(buffer.data(), 1, buffer.size(), pipe)) json.append(buffer.data(), got);
  if (pclose(pipe) != 0) return std::nullopt;
  return bench::ParseResults(json);
}

// Prints each required case that the run lacked, and each that could not be measured here.
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

// Runs one suite, and adds its results to `all` and its bars to `judged`. Returns false if it did not finish.
bool RunSuite(const bench::Suite& suite, const Options& options, bench::Results& all,
              std::vector<bench::Judged>& judged, bool& all_there) {
  bench::Method method = suite.method;
  if (options.method.repetitions > 0) method.repetitions = options.method.repetitions;
  if (options.method.min_seconds > 0) method.min_seconds = options.method.min_seconds;
  std::optional<bench::Results> results = RunBenchmark(suite, method, !options.names);
  if (!results) {
    std::fprintf(stderr, "check_bars: %s did not run to its end\n", suite.program);
    return false;
  }
  all_there = AllThere(*results, suite.names) && all_there;
  for (const bench::Judged& one : bench::Judge(*results, suite.bars)) judged.push_back(one);
  all.merge(*results);
  return true;
}

// Adapters are optional components, which may not have been built.
bool IsBuilt(const char* program) {
  return std::filesystem::exists(std::filesystem::read_symlink("/proc/self/exe").parent_path() / program);
}

int Check(const Options& options) {
  bench::Results results;
  std::vector<bench::Judged> judged;
  bool all_there = true;
  size_t programs = 0;
  for (const bench::Suite& suite : bench::Suites()) {
    if (!options.only.empty() && options.only != suite.program) continue;
    if (!IsBuilt(suite.program)) {
      std::printf("SKIPPED: %s: it was not built\n", suite.program);
      continue;
    }
    ++programs;
    if (!RunSuite(suite, options, results, judged, all_there)) return 2;
  }
  if (programs == 0) {
    std::fprintf(stderr, "check_bars: there is no such benchmark to run\n%s", kUsage);
    return 2;
  }
  if (options.names) return all_there ? 0 : 1;
  std::fputs(bench::FormatBars(judged).c_str(), stdout);
  if (!options.page.empty()) {
    std::ofstream file(options.page);
    if (!(file << bench::FormatPage(results, judged)).flush()) {
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
