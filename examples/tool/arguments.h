// Command lines without options: those of doctor, drain, profile and stacks.
#pragma once

namespace tool {

struct Usage {
  const char* program;
  const char* text;
  int max_arguments;
};

// For -h and --help prints the text and exits with 0. Exits with 2 if there are more arguments than max_arguments.
void CheckArguments(const Usage& usage, int argc, char** argv);

// Checks the arguments, and returns the first one, a number of seconds; `otherwise` if there is none. Exits with 2 if
// it is anything else.
double SecondsArgument(const Usage& usage, int argc, char** argv, double otherwise);

}  // namespace tool
