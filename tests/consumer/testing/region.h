// What both programs assert on: a string that is too long for its own buffer.
#pragma once

#include <string>

inline std::string LongName(int n) {
  return "a name that does not fit into the object itself, number " + std::to_string(n);
}
