// The copies of ittnotify that have called libperfkit_itt.so.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include "src/itt/abi.h"

namespace perfkit::itt {

// Thread-safe, without a lock: it is used while a program may fork.
class Copies {
 public:
  static constexpr size_t kMaxCopies = 256;  // Further ones are forgotten.

  void Add(Global* global, int groups) {
    const size_t i = size_.fetch_add(1, std::memory_order_relaxed);
    if (i >= kMaxCopies) return;
    copies_[i].groups = groups;
    copies_[i].global.store(global, std::memory_order_seq_cst);
  }

  // Calls `visit` for each one that has been added.
  template <class Visit>
  void ForEach(Visit&& visit) {
    for (Copy& copy : copies_) {
      if (Global* const global = copy.global.load(std::memory_order_seq_cst)) visit(global, copy.groups);
    }
  }

 private:
  struct Copy {
    int groups = 0;
    std::atomic<Global*> global{nullptr};  // Stored last: pairs with ForEach.
  };

  std::array<Copy, kMaxCopies> copies_;
  std::atomic<size_t> size_{0};
};

}  // namespace perfkit::itt
