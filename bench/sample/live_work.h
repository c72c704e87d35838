// What a sampled thread does while a sample's price is taken: programs whose stacks are walked, or copied, in earnest.
#pragma once

#include <span>

namespace bench {

struct LiveWork {
  const char* name;
  void (*run)();  // the same each time, about 2 ms
};

// Recursive C++ as a compiler is, an interpreter of a language like Python, and SQLite where it is installed.
std::span<const LiveWork> LiveWorks();

}  // namespace bench
