// The ways in which shadowed_program.cc is compiled, for tests that stop it at every instruction.
#pragma once

#include <string>

#include "tests/support/run.h"

namespace perfkit::testing {

// Calls `check(compiler, options)` for each compiler that is here, level and way with frame pointers, and one that
// throws. Steps cost tens of microseconds each: the tests that always run take one build each, unlike each other.
template <class Check>
void ForEachShadowedBuild(Check check) {
  const bool clang = RunCommand("clang++ --version").exit_code == 0;
  check("g++", "-O2 -DWITH_THROW");
  for (const char* level : {"-O0", "-O2", "-O3"}) {
    for (const char* pointers : {"-fomit-frame-pointer", "-fno-omit-frame-pointer"}) {
      const std::string options = std::string(level) + " " + pointers;
      check("g++", options);
      if (clang) check("clang++", options);
    }
  }
}

}  // namespace perfkit::testing
