// The head of a report: which counters were requested, by which means, and the quality of each here.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/str_format.h"
#include "perfkit/benchmark_region.h"
#include "perfkit/counter.h"
#include "perfkit/format.h"
#include "src/benchmark/adapter/choice.h"
#include "src/benchmark/adapter/column.h"
#include "src/benchmark/adapter/head_reasons.h"

namespace perfkit {
namespace {

// What a list of counters, or of metrics, is called in the environment and on the command line.
struct Setting {
  const char* variable;
  std::string_view flag;
  const char* example;
  std::string (*check)(const std::string& list);
};
constexpr Setting kCounters{"PERFKIT_COUNTERS", "--perfkit_counters=", "page-faults,cycles", CheckBenchmarkCounters};
constexpr Setting kMetrics{"PERFKIT_METRICS", "--perfkit_metrics=", "'ipc=instructions/cycles'", CheckBenchmarkMetrics};
constexpr char kDefault[] = "instructions,cycles,page-faults";

std::string MissingText(const std::string& name, const std::string& reason) {
  adapter::NoteHeadReason(name, reason);
  return name + " n/a (" + reason + ")";
}

std::string Describe(const adapter::Wanted& wanted, const CounterSet* set, const std::string& refused) {
  if (!wanted.why_not.empty()) return MissingText(wanted.name, wanted.why_not);
  if (set == nullptr) return MissingText(wanted.name, refused);
  const size_t i = wanted.index;
  if (!set->fixed_flags(i).counted()) return MissingText(wanted.name, adapter::WhyNot(*set, i, {}));
  std::string text = adapter::ColumnName(set->event(i), set->fixed_flags(i));
  text += " by ";
  text += ReadPathName(set->path(i));
  return text;
}

std::string DescribeCounters() {
  adapter::Choice choice = adapter::Choose(BenchmarkCounters());
  adapter::AddMetrics(choice, BenchmarkMetrics());
  std::optional<CounterSet> set;
  std::string refused;
  absl::StatusOr<CounterSet> opened = CounterSet::Open(choice.groups, Target::ThisThread(), {.require_all = false});
  if (opened.ok()) {
    set.emplace(*std::move(opened));
  } else {
    refused = FormatReason({}, opened.status());
  }
  std::string line;
  for (const adapter::Wanted& wanted : choice.wanted) {
    line += (line.empty() ? "" : "; ") + Describe(wanted, set ? &*set : nullptr, refused);
  }
  for (const adapter::WantedMetric& wanted : choice.metrics) {
    line += "; " + (wanted.metric ? wanted.metric->text() : MissingText(wanted.name, wanted.why_not));
  }
  return line;
}

std::string FromEnvironment(const Setting& setting, const char* otherwise) {
  const char* const value = std::getenv(setting.variable);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

// Removes the flag from argv, and sets the variable to its list (the last of several). Returns what is wrong, or "".
std::string TakeFlag(const Setting& setting, int* argc, char** argv) {
  const std::string_view flag = setting.flag.substr(0, setting.flag.size() - 1);
  char** const begin = argv + std::min(*argc, 1);
  if (std::any_of(begin, argv + *argc, [&](const char* argument) { return flag == argument; })) {
    return std::string(flag) + " needs its list in the same word: " + std::string(setting.flag) + setting.example;
  }
  std::optional<std::string> list;
  char** const end = std::remove_if(begin, argv + *argc, [&](const char* argument) {
    if (!std::string_view(argument).starts_with(setting.flag)) return false;
    list = argument + setting.flag.size();
    return true;
  });
  if (end != argv + *argc) *end = nullptr;  // As main's argv ends.
  *argc = static_cast<int>(end - argv);
  if (!list) return "";
  setenv(setting.variable, list->c_str(), 1);
  const std::string wrong = setting.check(*list);
  return wrong.empty() ? "" : absl::StrFormat("%s: %s", flag, wrong);
}

}  // namespace

std::string BenchmarkCounters() { return FromEnvironment(kCounters, kDefault); }
std::string BenchmarkMetrics() { return FromEnvironment(kMetrics, ""); }

BenchmarkContext DescribeBenchmarks(bool pauses_seen) {
  return {.machine = FormatMachine(),
          .counters = DescribeCounters(),
          .pauses = pauses_seen ? "excluded from all counts, as from the times"
                                : "counted too, because this program is not linked with -Wl,--wrap of PauseTiming (the "
                                  "CMake target perfkit::benchmark and pkg-config do that)"};
}

std::string CheckBenchmarkCounters(const std::string& list) { return adapter::Choose(list).wrong; }

std::string CheckBenchmarkMetrics(const std::string& list) {
  adapter::Choice choice = adapter::Choose(BenchmarkCounters());
  choice.wrong.clear();  // CheckBenchmarkCounters tells of errors in the counters.
  adapter::AddMetrics(choice, list);
  return choice.wrong;
}

// The kernel has the arguments before main runs, each ended by a NUL (man proc).
std::string BenchmarkArgument(std::string_view prefix) {
  std::FILE* const file = std::fopen("/proc/self/cmdline", "r");
  if (file == nullptr) return "";
  std::string argument;
  bool done = false;
  for (int c; !done && (c = std::fgetc(file)) != EOF;) {
    if (c != '\0') {
      argument += static_cast<char>(c);
    } else if (!(done = argument.starts_with(prefix))) {
      argument.clear();
    }
  }
  std::fclose(file);
  return done ? argument : "";
}

std::string TakeBenchmarkFlags(int* argc, char** argv) {
  const std::string wrong = TakeFlag(kCounters, argc, argv);
  return wrong.empty() ? TakeFlag(kMetrics, argc, argv) : wrong;
}

const char* BenchmarkFlagsHelp() {
  return "perfkit: [--perfkit_counters=LIST]  e.g. instructions,cycles,page-faults,context-switches,allocations\n"
         "         (default: PERFKIT_COUNTERS in the environment, else instructions,cycles,page-faults)\n"
         "         [--perfkit_metrics=LIST]  e.g. 'ipc=instructions/cycles;mpki=1000*cache-misses/instructions'\n"
         "         (default: PERFKIT_METRICS in the environment)\n\n";
}

}  // namespace perfkit
