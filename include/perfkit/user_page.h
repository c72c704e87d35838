// The page that the kernel shares for each mapped event, and how to read it: seqlock, counter registers, ring head.
//
// Layout and protocol: struct perf_event_mmap_page in include/uapi/linux/perf_event.h (Linux 3.12 and later).
// Everything here is inline, takes the page by pointer, and makes no system call; a page in ordinary memory will do.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace perfkit {

// The fields of perf_event_mmap_page that have a meaning to a reader. The kernel writes them at any time.
struct UserPage {
  uint32_t version, compat_version;
  uint32_t lock;  // changes by 2 around each update; unchanged between two points: the thread was not switched
  uint32_t index;  // counter register + 1; 0: not on a counter now
  int64_t offset;
  uint64_t time_enabled, time_running;
  uint64_t capabilities;
  uint16_t pmc_width, time_shift;
  uint32_t time_mult;
  uint64_t time_offset, time_zero;
  uint32_t size, reserved_1;
  uint64_t time_cycles, time_mask;
  std::byte reserved_2[928];
  uint64_t data_head, data_tail, data_offset, data_size;
  uint64_t aux_head, aux_tail, aux_offset, aux_size;

  bool can_read_counter() const { return (capabilities >> 2 & 1) != 0; }  // cap_user_rdpmc
  bool has_time() const { return (capabilities >> 3 & 1) != 0; }          // cap_user_time
};
static_assert(offsetof(UserPage, lock) == 8);
static_assert(offsetof(UserPage, time_cycles) == 80);
static_assert(offsetof(UserPage, data_head) == 1024);

// A word that the kernel writes, read with acquire: pairs with the kernel's barrier before it publishes
// (perf_event_update_userpage for `lock`, perf_output_put_handle for `data_head`).
template <class T>
inline T LoadShared(const T& word) noexcept {
  return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}

// The machine's tick counter: rdtsc, cntvct_el0. Constant rate on every CPU that perf's own user page supports.
// No serialising: a reader only needs it not to move over the seqlock, which the compiler barrier ensures.
inline uint64_t ReadTicks() noexcept {
#if defined(__x86_64__)
  const uint64_t ticks = __rdtsc();
#elif defined(__aarch64__)
  uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
#else
  const uint64_t ticks = 0;
#endif
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return ticks;
}

// Names the calling thread by the address of its control block: one instruction, no call, no storage of ours.
// Unique among living threads; a later thread may get a dead one's.
inline uintptr_t ThreadAddress() noexcept {
#if defined(__x86_64__) || defined(__aarch64__) || defined(__riscv)
  return reinterpret_cast<uintptr_t>(__builtin_thread_pointer());
#else
  return 0;
#endif
}

}  // namespace perfkit
