// A memory mapping with one owner.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "src/sys/kernel.h"

namespace perfkit::sys {

// Returns the size of a page of this machine in bytes.
size_t PageSize();

// Maps `size` bytes of new memory, private, writable and zero, with all pages present if the kernel has them: then
// perf counts no page fault for them, but getrusage does. Returns nullptr on failure, with errno. Async-signal-safe.
std::byte* MapPresent(size_t size);
// Unmaps what MapPresent returned.
void UnmapPresent(std::byte* memory, size_t size);

// Unmaps its memory when it is destroyed. Movable, not copyable.
class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    if (this != &other) {
      Reset();
      data_ = std::exchange(other.data_, nullptr);
      size_ = std::exchange(other.size_, 0);
    }
    return *this;
  }
  ~Mapping() { Reset(); }

  // Maps `size` bytes of `fd` from its start, shared and read-only. Returns nullopt on failure, with errno.
  static std::optional<Mapping> ReadOnly(int fd, size_t size);

  // As ReadOnly, but writable: the kernel sees the writes.
  static std::optional<Mapping> Shared(int fd, size_t size);

  // Maps `size` bytes of new memory, private, writable and zero. Returns nullopt on failure.
  static std::optional<Mapping> Anonymous(size_t size);

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

  void Reset() {
    if (data_ != nullptr) kernel().munmap(std::exchange(data_, nullptr), std::exchange(size_, 0));
  }

  // Gives the mapping up without unmapping it. For a forked child: the kernel has not copied event mappings there, and
  // another mapping may have the address by now.
  void Forget() {
    data_ = nullptr;
    size_ = 0;
  }

 private:
  Mapping(std::byte* data, size_t size) : data_(data), size_(size) {}

  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace perfkit::sys
