// Runs a command line in a shell, and keeps its output.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace perfkit::testing {

struct Run {
  int exit_code = -1;  // -1: it was ended by a signal.
  std::string output;  // Both of its streams.
};

inline Run RunCommand(const std::string& command) {
  Run run;
  // In braces: the command may redirect its own streams, which must not undo the redirection here.
  FILE* const pipe = popen(("{ " + command + "\n} 2>&1").c_str(), "r");
  if (pipe == nullptr) return run;
  std::array<char, 4096> buffer;
  while (const size_t got = fread(buffer.data(), 1, buffer.size(), pipe)) run.output.append(buffer.data(), got);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) run.exit_code = WEXITSTATUS(status);
  return run;
}

}  // namespace perfkit::testing
