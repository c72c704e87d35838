// record's command line: what is sampled, as simpleperf record has it, and what is shown, as perf report has it.
#pragma once

#include <perfkit/report.h>
#include <perfkit/sampler.h>

#include <optional>
#include <string>
#include <vector>

#include "tool/targets.h"

namespace record {

struct Options {
  std::vector<std::string> events;          // -e; empty: cpu-clock
  std::optional<perfkit::SampleRate> rate;  // -f, -c; nothing: the sampler's, which depends on the event
  tool::TargetNames names;                  // -a --cpu -p -t
  std::vector<std::string> command;
  std::optional<perfkit::BranchFilter> branches;
  perfkit::CallStack stack;
  size_t ring_pages = 128;
  bool inherit = true;
  std::optional<double> seconds;  // nothing: until the command or the target ends, or Ctrl-C; of the demo 4
  // Of the profile.
  bool demangle = true;
  bool lines = true;
  perfkit::ReportOptions report{.max_lines = 40, .call_tree = false};  // the call tree comes with stacks
  std::vector<std::string> outputs;                                    // -o
  // Of the demo.
  int workers = 0;  // 0: one a CPU
  bool help = false;

  // No target was named: record samples itself, compressing.
  bool demo() const { return names.empty() && command.empty(); }
};

// What --help prints.
extern const char kUsage[];

// Returns false, with `error` set, for words that are not in kUsage, or values that are not valid.
bool ParseOptions(int argc, char** argv, Options* options, std::string* error);

}  // namespace record
