// Maps the parts of ZoneMemory. They form a list, so that the number of parts has no limit and needs no memory.
#include "src/count/frame/zone_memory.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <new>
#include <utility>

namespace perfkit::count {
namespace {

constexpr size_t RoundUp(size_t value, size_t to) { return (value + to - 1) / to * to; }

}  // namespace

ZoneMemory::ZoneMemory(size_t first_bytes, size_t step_bytes)
    : first_(std::make_unique<Line[]>(RoundUp(first_bytes, sizeof(Line)) / sizeof(Line))),
      step_bytes_(step_bytes),
      next_(first_[0].bytes),
      end_(next_ + RoundUp(first_bytes, sizeof(Line))) {}

ZoneMemory::ZoneMemory(ZoneMemory&& other) noexcept
    : first_(std::move(other.first_)),
      step_bytes_(other.step_bytes_),
      parts_(std::exchange(other.parts_, nullptr)),
      next_(std::exchange(other.next_, nullptr)),
      end_(std::exchange(other.end_, nullptr)) {}

ZoneMemory& ZoneMemory::operator=(ZoneMemory&& other) noexcept {
  if (this == &other) return *this;
  Release();
  first_ = std::move(other.first_);
  step_bytes_ = other.step_bytes_;
  parts_ = std::exchange(other.parts_, nullptr);
  next_ = std::exchange(other.next_, nullptr);
  end_ = std::exchange(other.end_, nullptr);
  return *this;
}

std::byte* ZoneMemory::Take(size_t bytes, size_t alignment) noexcept {
  for (;;) {
    const size_t skip = (0 - reinterpret_cast<uintptr_t>(next_)) & (alignment - 1);
    const size_t left = static_cast<size_t>(end_ - next_);
    if (left >= skip && left - skip >= bytes) {
      std::byte* const piece = next_ + skip;
      next_ = piece + bytes;
      return piece;
    }
    if (!Grow(bytes + alignment)) return nullptr;
  }
}

// The rest of the latest part is given up: it is smaller than one piece.
bool ZoneMemory::Grow(size_t bytes) noexcept {
  const int before = errno;
  const size_t size = RoundUp(sizeof(Part) + bytes, std::max(step_bytes_, sys::PageSize()));
  std::byte* const memory = sys::MapPresent(size);
  errno = before;
  if (memory == nullptr) return false;
  parts_ = new (memory) Part{parts_, size};
  next_ = memory + sizeof(Part);
  end_ = memory + size;
  return true;
}

void ZoneMemory::Release() {
  while (parts_ != nullptr) {
    Part* const part = std::exchange(parts_, parts_->older);
    sys::UnmapPresent(reinterpret_cast<std::byte*>(part), part->size);
  }
}

}  // namespace perfkit::count
