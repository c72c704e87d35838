// The memory of one thread's zones, which grows with the zones that the thread enters.
//
// Pieces are taken one after the other, never move, and are released together. So other threads may read a piece while
// its owner takes the next one. The first bytes are from the heap. All later ones are mapped, with all pages present: a
// signal handler may enter a zone that is new to its thread, so that malloc can't be called; and perf counts no page
// fault of the program for these pages. getrusage does (mm_account_fault in mm/memory.c of Linux).
#pragma once

#include <cstddef>
#include <memory>

#include "src/sys/mapping.h"

namespace perfkit::count {

// Not thread-safe. Movable: pieces stay where they are.
class ZoneMemory {
 public:
  // `first_bytes`: the size of the part that is from the heap. `step_bytes`: how much is mapped at a time.
  ZoneMemory(size_t first_bytes, size_t step_bytes);
  ~ZoneMemory() { Release(); }
  ZoneMemory(ZoneMemory&& other) noexcept;
  ZoneMemory& operator=(ZoneMemory&& other) noexcept;

  // Returns `bytes` of zeros; nullptr if the kernel has no more memory for this process. `alignment`: a power of two,
  // at most 64. Does not call malloc; preserves errno.
  std::byte* Take(size_t bytes, size_t alignment) noexcept;

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  // The start of each mapped part.
  struct Part {
    Part* older;
    size_t size;
  };

  bool Grow(size_t bytes) noexcept;
  void Release();

  std::unique_ptr<Line[]> first_;
  size_t step_bytes_;
  Part* parts_ = nullptr;  // the latest one
  std::byte* next_;        // the rest of the latest part, up to end_
  std::byte* end_;
};

}  // namespace perfkit::count
