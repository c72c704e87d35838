// The head of a report: which counters were requested, by which means, and the quality of each here.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "perfkit/benchmark_region.h"
#include "perfkit/counter.h"
#include "perfkit/format.h"
#include "src/benchmark/adapter/choice.h"
#include "src/benchmark/adapter/column.h"

namespace perfkit {
namespace {

constexpr char kVariable[] = "PERFKIT_COUNTERS";
constexpr std::string_view kFlag = "--perfkit_counters=";
constexpr char kDefault[] = "instructions,cycles,page-faults";

std::string Describe(const adapter::Wanted& wanted, const CounterSet* set, const std::string& refused) {
  if (!wanted.why_not.empty()) return wanted.name + " n/a (" + wanted.why_not + ")";
  if (wanted.source == adapter::Wanted::Source::kAllocations) return wanted.name + " by wrapped malloc";
  if (set == nullptr) return wanted.name + " n/a (" + refused + ")";
  const size_t i = wanted.index;
  if (!set->fixed_flags(i).counted()) return wanted.name + " n/a (" + adapter::WhyNot(*set, i, {}) + ")";
  std::string text = adapter::ColumnName(set->event(i), set->fixed_flags(i));
  text += " by ";
  text += ReadPathName(set->path(i));
  return text;
}

std::string DescribeCounters() {
  const adapter::Choice choice = adapter::Choose(BenchmarkCounters());
  std::optional<CounterSet> set;
  std::string refused = "nothing to open";
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
  // Appends the brackets of the message, which the reasons leave out: they say where names are documented.
  return line + choice.wrong.substr(std::min(choice.wrong.find(" ("), choice.wrong.size()));
}

}  // namespace

std::string BenchmarkCounters() {
  const char* const value = std::getenv(kVariable);
  return value == nullptr || *value == '\0' ? kDefault : value;
}

BenchmarkContext DescribeBenchmarks(bool pauses_seen) {
  return {.machine = FormatMachine(),
          .counters = DescribeCounters(),
          .pauses = pauses_seen ? "not counted"
                                : "counted too, because this program is not linked with -Wl,--wrap of PauseTiming (the "
                                  "CMake target perfkit::benchmark does that)"};
}

std::string CheckBenchmarkCounters(const std::string& list) { return adapter::Choose(list).wrong; }

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
  std::optional<std::string> list;
  const auto is_flag = [](const char* argument) {
    return std::string_view(argument) == kFlag.substr(0, kFlag.size() - 1);
  };
  if (std::any_of(argv + std::min(*argc, 1), argv + *argc, is_flag)) {
    return "--perfkit_counters needs its list in the same word: --perfkit_counters=page-faults,cycles";
  }
  char** const end = std::remove_if(argv + std::min(*argc, 1), argv + *argc, [&](const char* argument) {
    if (!std::string_view(argument).starts_with(kFlag)) return false;
    list = std::string_view(argument).substr(kFlag.size());
    return true;
  });
  *argc = static_cast<int>(end - argv);
  if (!list) return "";
  setenv(kVariable, list->c_str(), 1);
  return CheckBenchmarkCounters(*list);
}

const char* BenchmarkFlagsHelp() {
  return "perfkit: [--perfkit_counters=LIST]  e.g. instructions,cycles,page-faults,context-switches,allocations\n"
         "         (default: PERFKIT_COUNTERS in the environment, else instructions,cycles,page-faults)\n\n";
}

}  // namespace perfkit
