// The work of a sampled thread while the cost of samples is measured: programs with realistic stacks.
#pragma once

#include <span>

namespace bench {

struct LiveWork {
  const char* name;
  void (*run)();  // Always the same work, about 2 ms.
};

// Recursive C++ as in a compiler, an interpreter of a language like Python, and SQLite if it is installed.
std::span<const LiveWork> LiveWorks();

}  // namespace bench
