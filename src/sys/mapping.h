// A memory mapping with one owner.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "src/sys/kernel.h"

namespace perfkit::sys {

// Bytes in a page of this machine.
size_t PageSize();

// Unmaps what it holds when it dies. Moves, never copies.
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

  // `size` bytes of `fd` from its start, shared and read-only. Nothing on failure: errno says why.
  static std::optional<Mapping> ReadOnly(int fd, size_t size);

  // The same, writable: what is written there the kernel sees.
  static std::optional<Mapping> Shared(int fd, size_t size);

  // `size` bytes of new memory, private and writable: zeros that nobody has touched yet. Nothing on failure.
  static std::optional<Mapping> Anonymous(size_t size);

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

  void Reset() {
    if (data_ != nullptr) kernel().munmap(std::exchange(data_, nullptr), std::exchange(size_, 0));
  }

  // Lets go without unmapping: in the child of a fork the kernel has not copied event mappings, and the address
  // may be somebody else's by now.
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
