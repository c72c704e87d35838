// Up to where memory is a thread's own stack, so that a walk need not ask the kernel for each page of it.
//
//   a walk, in a handler: EndAbove(sp) ── not known ──> a request ──┐
//   Maintain: /proc/self/maps: does one mapping hold sp and the thread's control block? <┘
//
// glibc and musl keep a thread's control block above its stack, in the same mapping, which stays as long as the thread
// runs; a guard page ends it below. The main thread's stack is the mapping that the kernel calls [stack]. Of stacks
// that a program switches to by itself (fibers, a handler's own) nobody knows for how long they stay: there walks ask.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "src/base/in_handler.h"
#include "src/unwind/dwarf/backoff.h"

namespace perfkit::unwind {

class ThreadStackBounds {
 public:
  // For handlers. All of [sp, end) is the calling thread's stack for as long as it runs. 0: that is not known, yet.
  PERFKIT_IN_HANDLER uint64_t EndAbove(uint64_t sp);

  // Whether it is time to read /proc/self/maps, for handlers have asked; then Learn from its text. One thread at a
  // time.
  bool Wants() { return backoff_.IsOver(requested_); }
  void Learn(std::string_view maps);

 private:
  // Of the threads whose control blocks fall here, by hash, the one that asked last.
  struct Slot {
    std::atomic<uint64_t> thread{0}, begin{0}, end{0};
    std::atomic<uint64_t> requested{0}, requested_sp{0};  // who asks, kMain or 0 with it; and of which stack
  };
  static constexpr unsigned kBits = 8;
  static constexpr uint64_t kMain = 1;  // control blocks are aligned

  Slot slots_[size_t{1} << kBits];
  std::atomic<bool> requested_{false};
  Backoff backoff_;
};

}  // namespace perfkit::unwind
