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
  uint32_t lock;   // changes by 2 around each update; unchanged between two points: the thread was not switched
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

// `value` as a signed number of `width` bits (UserPage::pmc_width), widened to 64. A width of 0 (no PMU behind the
// page) has no bits to keep: the result is 0. Widths above 64 count as 64.
constexpr int64_t SignExtend(uint64_t value, unsigned width) {
  if (width == 0) return 0;
  if (width >= 64) return static_cast<int64_t>(value);
  const unsigned unused = 64 - width;
  return static_cast<int64_t>(value << unused) >> unused;
}

// Reads counter register `n` of this CPU. The page says which n, and whether user space may at all.
struct CounterRegister {
  uint64_t operator()(uint32_t n) const noexcept {
#if defined(__x86_64__)
    return __rdpmc(static_cast<int>(n));  // fixed counters carry bit 30 in n
#elif defined(__aarch64__)
    return ReadArmCounter(n);
#else
    (void)n;
    return 0;
#endif
  }

 private:
#if defined(__aarch64__)
  static uint64_t ReadArmCounter(uint32_t n) noexcept;
#endif
};

#if defined(__aarch64__)
// PMEVCNTR0_EL0..PMEVCNTR30_EL0 have no indexed form; 31 is the cycle counter (drivers/perf/arm_pmuv3.c,
// ARMV8_PMU_CYCLE_IDX). Reading through PMSELR_EL0 would need a write that may be preempted: hence the table.
inline uint64_t CounterRegister::ReadArmCounter(uint32_t n) noexcept {
  uint64_t value = 0;
#define PERFKIT_ARM_COUNTER(k) \
  case k: asm volatile("mrs %0, pmevcntr" #k "_el0" : "=r"(value)); break;
  switch (n) {
    PERFKIT_ARM_COUNTER(0)
    PERFKIT_ARM_COUNTER(1)
    PERFKIT_ARM_COUNTER(2)
    PERFKIT_ARM_COUNTER(3)
    PERFKIT_ARM_COUNTER(4) PERFKIT_ARM_COUNTER(5) PERFKIT_ARM_COUNTER(6) PERFKIT_ARM_COUNTER(7) PERFKIT_ARM_COUNTER(8)
        PERFKIT_ARM_COUNTER(9) PERFKIT_ARM_COUNTER(10) PERFKIT_ARM_COUNTER(11) PERFKIT_ARM_COUNTER(12)
            PERFKIT_ARM_COUNTER(13) PERFKIT_ARM_COUNTER(14) PERFKIT_ARM_COUNTER(15) PERFKIT_ARM_COUNTER(16)
                PERFKIT_ARM_COUNTER(17) PERFKIT_ARM_COUNTER(18) PERFKIT_ARM_COUNTER(19) PERFKIT_ARM_COUNTER(20)
                    PERFKIT_ARM_COUNTER(21) PERFKIT_ARM_COUNTER(22) PERFKIT_ARM_COUNTER(23) PERFKIT_ARM_COUNTER(24)
                        PERFKIT_ARM_COUNTER(25) PERFKIT_ARM_COUNTER(26) PERFKIT_ARM_COUNTER(27) PERFKIT_ARM_COUNTER(28)
                            PERFKIT_ARM_COUNTER(29) PERFKIT_ARM_COUNTER(30) case 31 : asm volatile("mrs %0, pmccntr_el0"
                                                                                                   : "=r"(value));
    break;
    default: break;
  }
#undef PERFKIT_ARM_COUNTER
  return value;
}
#endif

// A counter and its two times, as one consistent reading.
struct UserCount {
  uint64_t value = 0, enabled_ns = 0, running_ns = 0;
};

// Nanoseconds that have passed since the kernel last wrote the page's times; 0 where the page cannot tell.
// The formula of the uapi header, time_cycles and time_mask (cap_user_time_short) included.
inline uint64_t NsSinceUpdate(const UserPage& page, uint64_t ticks) noexcept {
  if (!page.has_time()) return 0;
  if ((page.capabilities >> 5 & 1) != 0) ticks = page.time_cycles + ((ticks - page.time_cycles) & page.time_mask);
  const unsigned shift = page.time_shift & 63;
  const uint64_t quotient = ticks >> shift;
  const uint64_t rest = ticks & ((uint64_t{1} << shift) - 1);
  return page.time_offset + quotient * page.time_mult + ((rest * page.time_mult) >> shift);
}

// Reads the event behind `page` without a system call. False when it is not on a counter now (index 0), when user
// space may not read counters, or when the kernel kept writing: then only read(2) knows.
template <class Register = CounterRegister>
bool ReadUserCount(const UserPage& page, UserCount& out, Register read_register = {}) noexcept {
  constexpr int kTries = 64;
  for (int i = 0; i < kTries; ++i) {
    const uint32_t lock = LoadShared(page.lock);
    const uint32_t index = __atomic_load_n(&page.index, __ATOMIC_RELAXED);
    if (index == 0 || !page.can_read_counter()) return false;
    const uint64_t since = NsSinceUpdate(page, page.has_time() ? ReadTicks() : 0);
    out.enabled_ns = __atomic_load_n(&page.time_enabled, __ATOMIC_RELAXED) + since;
    out.running_ns = __atomic_load_n(&page.time_running, __ATOMIC_RELAXED) + since;
    const int64_t counted = SignExtend(read_register(index - 1), page.pmc_width);
    out.value = static_cast<uint64_t>(__atomic_load_n(&page.offset, __ATOMIC_RELAXED)) + static_cast<uint64_t>(counted);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (LoadShared(page.lock) == lock) return true;
  }
  return false;
}

}  // namespace perfkit
