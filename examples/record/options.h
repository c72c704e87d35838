// record's command line: simpleperf record's options, as far as they say what is sampled; and how it is told.
#pragma once

#include <perfkit/sampler.h>

#include <optional>
#include <string>
#include <vector>

#include "tool/targets.h"

namespace record {

struct Options {
  std::vector<std::string> events;  // -e; empty: cpu-clock
  perfkit::SampleRate rate = perfkit::Frequency{1000};
  tool::TargetNames names;  // -a --cpu -p -t
  std::vector<std::string> command;
  std::optional<perfkit::BranchFilter> branches;
  perfkit::CallStack stack;
  size_t ring_pages = 128;
  bool inherit = true;
  std::optional<double> seconds;  // nothing: until the command or the target ends, or Ctrl-C; of the demo 4
  // Of the report.
  bool by_thread = false;
  bool demangle = true;
  size_t top = 25;
  // Of the demo.
  int workers = 0;  // 0: one a CPU
  bool help = false;

  // No target was named: record samples itself, compressing.
  bool demo() const { return names.empty() && command.empty(); }
};

// What --help prints.
extern const char kUsage[];

// False, with `error` set, for words that are not in kUsage, or values that are none.
bool ParseOptions(int argc, char** argv, Options* options, std::string* error);

}  // namespace record
