// Full copies of zones' names, at addresses that do not change.
#pragma once

#include <cstddef>
#include <cstring>

#include "src/count/frame/zone_memory.h"

namespace perfkit::count {

// Not thread-safe. Does not call malloc after construction.
class NameArena {
 public:
  NameArena() : memory_(kFirstBytes, kStepBytes) {}

  // Returns a NUL-terminated copy of `text`, valid as long as the arena; nullptr if there is no memory for it.
  const char* Copy(const char* text) {
    const size_t size = std::strlen(text) + 1;
    std::byte* const copy = memory_.Take(size, 1);
    return copy != nullptr ? static_cast<const char*>(std::memcpy(copy, text, size)) : nullptr;
  }

 private:
  static constexpr size_t kFirstBytes = 1024;
  static constexpr size_t kStepBytes = 4096;

  ZoneMemory memory_;
};

}  // namespace perfkit::count
