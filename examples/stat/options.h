// stat's command line: the options of simpleperf stat and perf stat that choose what is counted and how it is printed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tool/targets.h"

namespace stat_tool {

enum class Format { kTable, kCsv, kJson };

struct Options {
  std::string events;       // -e; "": simpleperf stat's choice
  tool::TargetNames names;  // -a --cpu -p -t; empty: the command
  std::vector<std::string> command;
  bool inherit = true;
  bool verbose = false;
  std::optional<double> seconds;   // -d; nullopt: until the command or the target ends, or Ctrl-C
  std::optional<double> interval;  // -I, in seconds
  int runs = 1;                    // -r
  Format format = Format::kTable;
  std::string separator;  // -x
  std::string output;     // -o; "": the standard output
};

// What --help prints.
extern const char kUsage[];

// The events to count, as text.
std::string EventsOf(const Options& options);

// Ends the program if the options are not in kUsage, or contradict each other.
Options ParseOptions(int argc, char** argv);

// Prints why, and exits with code 2.
[[noreturn]] void Refuse(const std::string& why);

}  // namespace stat_tool
