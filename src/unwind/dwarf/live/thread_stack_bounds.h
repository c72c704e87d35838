// The bounds of this process's thread stacks. With them, walks need not ask the kernel for each page whether it is
// mapped.
//
//   a walk, in a handler: EndAbove(sp) ── not known ──> request ───────────────────────────────┐
//   Maintain: does one mapping of /proc/self/maps contain sp and the thread's control block? <─┘
//
// glibc and musl keep a thread's control block above its stack, in the same mapping. That mapping exists as long as the
// thread runs; a guard page is below it. A later thread may have its control block at the same address, with a smaller
// stack below it, so bounds are also those of a tid. The main thread's stack is the mapping that the kernel calls
// [stack]. It is not known how long other stacks exist, such as those of fibers and alternate signal stacks; there,
// walks ask the kernel.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "src/base/in_handler.h"
#include "src/unwind/dwarf/live/backoff.h"

namespace perfkit::unwind {

// Thread-safe, except for Wants and Learn: those by one thread at a time.
class ThreadStackBounds {
 public:
  // Async-signal-safe. Returns an address up to which [sp, end) is the calling thread's own stack as long as it runs; 0
  // if that is not known (yet). `tid`: of the calling thread.
  PERFKIT_IN_HANDLER uint64_t EndAbove(uint64_t sp, uint32_t tid);

  // Returns true if handlers have made requests and it is time to read /proc/self/maps. Then call Learn with its text.
  // Takes the requests, so that the text is newer than they are: a later request may be that of a later thread.
  bool Wants();
  void Learn(std::string_view maps);

 private:
  // A control block, with kMain for the main thread, or 0; the thread's tid; and its stack pointer.
  struct Request {
    uint64_t thread = 0, tid = 0, sp = 0;
  };
  // For the threads whose control blocks have this slot's hash: the one that made the latest request.
  struct Slot {
    std::atomic<uint64_t> thread{0}, tid{0}, begin{0}, end{0};
    std::atomic<uint64_t> requested{0}, requested_tid{0}, requested_sp{0};  // As Request's.
    Request taken;                                                          // By Wants, for Learn.
  };
  static constexpr unsigned kBits = 8;
  static constexpr uint64_t kMain = 1;  // A free bit, because control blocks are aligned.

  Slot slots_[size_t{1} << kBits];
  std::atomic<bool> requested_{false};
  Backoff backoff_;
};

}  // namespace perfkit::unwind
