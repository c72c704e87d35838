// Full copies of zones' names, at addresses that do not change.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

namespace perfkit::count {

// Memory is allocated in blocks. Names that fit into the bytes reserved at construction cost no allocation. Not
// thread-safe.
class NameArena {
 public:
  explicit NameArena(size_t reserved_bytes) { AddBlock(reserved_bytes); }

  // Returns a NUL-terminated copy of `text`, valid as long as the arena.
  const char* Copy(const char* text) {
    const size_t size = std::strlen(text) + 1;
    if (size > left_) AddBlock(std::max(size, kBlockBytes));
    char* const copy = next_;
    std::memcpy(copy, text, size);
    next_ += size;
    left_ -= size;
    return copy;
  }

 private:
  static constexpr size_t kBlockBytes = 4096;

  void AddBlock(size_t bytes) {
    next_ = blocks_.emplace_back(std::make_unique<char[]>(bytes)).get();
    left_ = bytes;
  }

  std::vector<std::unique_ptr<char[]>> blocks_;
  char* next_ = nullptr;
  size_t left_ = 0;
};

}  // namespace perfkit::count
