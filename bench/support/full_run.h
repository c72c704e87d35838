// The option --full of a benchmark: cases take the size that a result needs, not just enough to see that they run.
#pragma once

#include <string_view>

namespace bench {

inline bool full_run = false;

// Takes the option out of the list, before Google Benchmark reads it.
inline void TakeFull(int* argc, char** argv) {
  int kept = 1;
  for (int i = 1; i < *argc; ++i) {
    if (std::string_view(argv[i]) == "--full") {
      full_run = true;
    } else {
      argv[kept++] = argv[i];
    }
  }
  *argc = kept;
}

}  // namespace bench
