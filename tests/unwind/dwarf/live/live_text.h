// The range of a module's code in this process, for handlers that check which module they interrupted.
#pragma once

#include <cstdint>
#include <string_view>

#include "src/unwind/dwarf/live/loaded_modules.h"

namespace perfkit::testing {

struct LiveText {
  uint64_t begin = 0, end = 0;
  bool Holds(uint64_t pc) const { return pc >= begin && pc < end; }
};

// Of the module whose path has `part` in it; of this program for "".
inline LiveText FindLiveText(std::string_view part) {
  LiveText text;
  const auto none = [](const unwind::LoadedModule&) { return false; };
  for (const unwind::LoadedModule& module : unwind::LookAtLoaded(none, 0).modules) {
    const bool found = part.empty() ? module.path.empty() : module.path.find(part) != std::string::npos;
    if (found) text = {module.code.front().begin, module.code.back().end};
  }
  return text;
}

}  // namespace perfkit::testing
