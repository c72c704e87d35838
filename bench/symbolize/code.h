// Code to ask for: what this process has mapped of a module, and places strewn over it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

struct Code {
  std::string path;
  uint64_t begin = 0, end = 0;  // where it is mapped
  uint64_t bias = 0;            // from where it is linked
};

// Of a library that this loads, LLVM's where it is here, else the C++ library; and of this program.
const Code& LargeLibrary();
const Code& ThisProgram();

// The `i`-th of places in the code, all different until they have been everywhere.
inline uint64_t PcIn(const Code& code, uint64_t i) {
  // Fibonacci hashing: steps of the golden section fall evenly.
  return code.begin + ((i * 0x9e3779b97f4a7c15u >> 32) * (code.end - code.begin) >> 32);
}

// How many different places a profile has: of 122,442 frames sampled in clang 2,733.
constexpr size_t kPcs = 2733;
// More than a Symbolizer remembers the calls at (8,192).
constexpr size_t kManyPcs = 40'000;

}  // namespace bench
