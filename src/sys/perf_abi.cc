// Chooses the size of the attr for the kernel.
#include "src/sys/perf_abi.h"

#include <array>
#include <cstring>

namespace perfkit::sys {

uint32_t AttrSize(const PerfEventAttr& attr) {
  // PERF_ATTR_SIZE_VER0 .. VER8.
  constexpr std::array<uint32_t, 9> kPublished = {64, 72, 80, 96, 104, 112, 120, 128, 136};
  std::array<unsigned char, sizeof(PerfEventAttr)> bytes;
  std::memcpy(bytes.data(), &attr, sizeof(attr));
  uint32_t used = sizeof(attr);
  while (used > 0 && bytes[used - 1] == 0) --used;
  for (const uint32_t size : kPublished) {
    if (used <= size) return size;
  }
  return sizeof(attr);
}

}  // namespace perfkit::sys
