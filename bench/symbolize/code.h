// Code to look up: the mapped code of a module, and locations spread over it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

struct Code {
  std::string path;
  uint64_t begin = 0, end = 0;  // Where it is mapped.
  uint64_t bias = 0;            // The distance from its link-time address.
};

// Return the code of a library that this program loads, LLVM's if it is installed, else the C++ library; and of this
// program.
const Code& LargeLibrary();
const Code& ThisProgram();

// Returns location `i`. They are all different until they have covered the code.
inline uint64_t PcIn(const Code& code, uint64_t i) {
  // Fibonacci hashing: steps by the golden ratio spread evenly.
  return code.begin + ((i * 0x9e3779b97f4a7c15u >> 32) * (code.end - code.begin) >> 32);
}

// Number of different locations in a profile: 122,442 frames sampled in clang had 2,733.
constexpr size_t kPcs = 2733;
// Exceeds the Symbolizer's cache (8,192).
constexpr size_t kManyPcs = 40'000;

}  // namespace bench
