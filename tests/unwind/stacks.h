// Stacks made by hand: words at addresses.
#pragma once

#include <vector>

#include "src/unwind/stack_bytes.h"

namespace perfkit::testing {

// `words` words from `begin` on, zeros where nothing was put.
class HandStack {
 public:
  HandStack(uint64_t begin, size_t words) : begin_(begin), words_(words) {}

  HandStack& Put(uint64_t address, uint64_t word) {
    words_.at((address - begin_) / 8) = word;
    return *this;
  }
  unwind::StackBytes bytes() const { return {begin_, std::as_bytes(std::span(words_))}; }
  uint64_t begin() const { return begin_; }
  uint64_t end() const { return begin_ + 8 * words_.size(); }

 private:
  uint64_t begin_;
  std::vector<uint64_t> words_;
};

}  // namespace perfkit::testing
