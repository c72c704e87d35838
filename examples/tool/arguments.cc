// Ends the program if its arguments are wrong, as getopt_long does for the tools with options.
#include "arguments.h"

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "output.h"
#include "targets.h"

namespace tool {
namespace {

[[noreturn]] void Refuse(const Usage& usage, const std::string& why) {
  fprintf(stderr, "%s: %s\n%s", usage.program, why.c_str(), usage.text);
  exit(2);
}

}  // namespace

void CheckArguments(const Usage& usage, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "-h" || word == "--help") exit(PrintText(usage.program, usage.text) ? 0 : 1);
  }
  if (argc - 1 > usage.max_arguments) {
    Refuse(usage, "unexpected argument '" + std::string(argv[usage.max_arguments + 1]) + "'");
  }
}

double SecondsArgument(const Usage& usage, int argc, char** argv, double otherwise) {
  CheckArguments(usage, argc, argv);
  std::optional<double> seconds = otherwise;
  if (argc > 1 && !ParseSeconds(argv[1], &seconds)) {
    Refuse(usage, "SECONDS must be a number of at least 0.001, not '" + std::string(argv[1]) + "'");
  }
  return *seconds;
}

}  // namespace tool
