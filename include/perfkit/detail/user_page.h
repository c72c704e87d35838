// The page that the kernel shares for each mapped event, and how to read it: seqlock, counter registers, ring head.
//
// Layout and protocol: struct perf_event_mmap_page in include/uapi/linux/perf_event.h (Linux 3.12 and later).
// Everything here is inline, takes the page by pointer, and makes no system call; the page may lie in ordinary memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace perfkit {

// The fields of perf_event_mmap_page that readers use. The kernel writes them at any time.
struct UserPage {
  uint32_t version, compat_version;
  // Changes by 2 at each update. On the page of a thread's software event, the same value at two times means that the
  // thread was not switched in between.
  uint32_t lock;
  uint32_t index;  // Counter register + 1; 0 means not on a counter now.
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

  // Bits of `capabilities`: cap_user_rdpmc, cap_user_time, cap_user_time_short.
  static constexpr uint64_t kCanReadCounter = 1 << 2, kCanTellTime = 1 << 3, kShortTicks = 1 << 5;

  bool can_read_counter() const { return (capabilities & kCanReadCounter) != 0; }
  bool has_time() const { return (capabilities & kCanTellTime) != 0; }
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

// Whether the functions below can read ticks and counter registers on this architecture.
#if defined(__x86_64__) || defined(__aarch64__)
inline constexpr bool kHasTicks = true, kHasCounterRegisters = true;
#elif defined(__riscv) && __riscv_xlen == 64
inline constexpr bool kHasTicks = true, kHasCounterRegisters = false;
#else
inline constexpr bool kHasTicks = false, kHasCounterRegisters = false;
#endif

// Reads the machine's tick counter: rdtsc, cntvct_el0, the CSR time. Its rate is constant on each CPU that perf's user
// page supports. There is no serialising instruction: it is enough that the compiler does not move the read out of the
// seqlock.
inline uint64_t ReadTicks() noexcept {
#if defined(__x86_64__)
  const uint64_t ticks = __builtin_ia32_rdtsc();  // Including <x86intrin.h> takes half a second for each file.
#elif defined(__aarch64__)
  uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
#elif defined(__riscv) && __riscv_xlen == 64
  uint64_t ticks;
  asm volatile("rdtime %0" : "=r"(ticks));
#else
  const uint64_t ticks = 0;
#endif
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return ticks;
}

// Returns nanoseconds. `ns_per_tick_q32`: nanoseconds per tick, in units of 2^-32.
inline uint64_t TicksToNs(uint64_t ticks, uint64_t ns_per_tick_q32) noexcept {
  __extension__ using Product = unsigned __int128;
  return static_cast<uint64_t>(Product{ticks} * ns_per_tick_q32 >> 32);
}

// Returns `value` as a signed number of `width` bits (UserPage::pmc_width), widened to 64. Returns 0 for a width of 0,
// which means that the page has no PMU. Widths beyond 64 count as 64.
constexpr int64_t SignExtend(uint64_t value, unsigned width) {
  if (width == 0) return 0;
  if (width >= 64) return static_cast<int64_t>(value);
  const unsigned unused = 64 - width;
  return static_cast<int64_t>(value << unused) >> unused;
}

// Reads counter register `n` of this CPU. The page has n, and says whether user space may read it.
#if defined(__x86_64__)
inline uint64_t ReadCounterRegister(uint32_t n) noexcept {
  return __builtin_ia32_rdpmc(static_cast<int>(n));  // n has bit 30 for fixed counters.
}
#elif defined(__aarch64__)
// PMEVCNTR0_EL0..PMEVCNTR30_EL0 have no indexed form; 31 is the cycle counter (drivers/perf/arm_pmuv3.c,
// ARMV8_PMU_CYCLE_IDX). Reading through PMSELR_EL0 would need a write that may be preempted, so this is a table. Each
// name is made from its number, so that no two can be swapped (tests/compile/arm_counters.cmake).
inline uint64_t ReadCounterRegister(uint32_t n) noexcept {
  uint64_t value = 0;
// clang-format off
#define PERFKIT_COUNTER(k) case k: asm volatile("mrs %0, pmevcntr" #k "_el0" : "=r"(value)); break;
#define PERFKIT_COUNTERS(a, b, c, d) PERFKIT_COUNTER(a) PERFKIT_COUNTER(b) PERFKIT_COUNTER(c) PERFKIT_COUNTER(d)
  switch (n) {
    PERFKIT_COUNTERS(0, 1, 2, 3)
    PERFKIT_COUNTERS(4, 5, 6, 7)
    PERFKIT_COUNTERS(8, 9, 10, 11)
    PERFKIT_COUNTERS(12, 13, 14, 15)
    PERFKIT_COUNTERS(16, 17, 18, 19)
    PERFKIT_COUNTERS(20, 21, 22, 23)
    PERFKIT_COUNTERS(24, 25, 26, 27)
    PERFKIT_COUNTER(28)
    PERFKIT_COUNTER(29)
    PERFKIT_COUNTER(30)
    case 31: asm volatile("mrs %0, pmccntr_el0" : "=r"(value)); break;
    default: break;
  }
#undef PERFKIT_COUNTERS
#undef PERFKIT_COUNTER
  // clang-format on
  return value;
}
#else
inline uint64_t ReadCounterRegister(uint32_t) noexcept { return 0; }  // Never called: kHasCounterRegisters.
#endif

// A reader's access to the page and the machine. Tests replace it by one that changes the page between any two calls.
struct PageAccess {
  static constexpr bool kHasRegisters = kHasCounterRegisters;
  static uint32_t Lock(const UserPage& page) noexcept { return LoadShared(page.lock); }
  template <class T>
  static T Load(const T& word) noexcept {
    return __atomic_load_n(&word, __ATOMIC_RELAXED);
  }
  static uint64_t Ticks() noexcept { return ReadTicks(); }
  static uint64_t Register(uint32_t n) noexcept { return ReadCounterRegister(n); }
};

// A ring that the kernel writes backwards (perf_event_attr::write_backward), of samples with PERF_SAMPLE_READ: the
// newest one is at the head, and has the event's count after its header. The head does not tell how many there are:
// other samplers of the event on this thread change their size.
struct BackwardRing {
  const uint64_t* head;
  const std::byte* data;
  uint32_t mask;  // The size of the data, a power of two, less 1.
};

// Returns the count in the newest sample; 0 before the first one, when the head and the ring's bytes are 0. Requires
// the event's thread.
inline uint64_t ReadNewestCount(const BackwardRing& ring) noexcept {
  constexpr uint64_t kHeaderBytes = 8;
  const uint64_t* const head = ring.head;
  while (true) {
    const uint64_t at = LoadShared(*head);
    const auto* const count = reinterpret_cast<const uint64_t*>(ring.data + ((at + kHeaderBytes) & ring.mask));
    const uint64_t value = LoadShared(*count);
    // Otherwise a signal handler has raised the event in between, and may have overwritten the record.
    if (LoadShared(*head) == at) [[likely]]
      return value;
  }
}

// A counter and its two times, from one consistent read.
struct UserCount {
  uint64_t value = 0, enabled_ns = 0, running_ns = 0;
};

// Returns the nanoseconds since the kernel last wrote the page's times; 0 if the page has no time conversion. The
// formula is that of the uapi header, including time_cycles and time_mask (cap_user_time_short). The header splits the
// product into quotient and remainder to stay within 64 bits, which can overflow for shifts above 32. Here the product
// has 128 bits: the result is the same for shifts up to 32, and right for all below 64.
template <class Access = PageAccess>
uint64_t NsSinceUpdate(const UserPage& page, uint64_t capabilities, Access access = {}) noexcept {
  if ((capabilities & UserPage::kCanTellTime) == 0) return 0;
  uint64_t ticks = access.Ticks();
  if ((capabilities & UserPage::kShortTicks) != 0) {
    const uint64_t cycles = access.Load(page.time_cycles);
    ticks = cycles + ((ticks - cycles) & access.Load(page.time_mask));
  }
  __extension__ using Wide = unsigned __int128;
  const Wide scaled = Wide{ticks} * access.Load(page.time_mult);
  return access.Load(page.time_offset) + static_cast<uint64_t>(scaled >> (access.Load(page.time_shift) & 63));
}

// Reads the event of `page` without a system call. Returns false, with `out` unspecified, if the event is not on a
// counter now (index 0), if user space may not read counters, or if the kernel kept writing: then read(2) is needed.
//
// A reader sees an odd lock if another CPU writes: an ioctl or an mmap of another thread. It sees updates by its own
// CPU as a whole.
template <class Access = PageAccess>
bool ReadUserCount(const UserPage& page, UserCount& out, Access access = {}) noexcept {
  constexpr int kTries = 64;
  if (!Access::kHasRegisters) return false;
  for (int i = 0; i < kTries; ++i) {
    const uint32_t lock = access.Lock(page);
    if ((lock & 1) != 0) continue;
    const uint32_t index = access.Load(page.index);
    const uint64_t capabilities = access.Load(page.capabilities);
    if (index == 0 || (capabilities & UserPage::kCanReadCounter) == 0) return false;
    const uint64_t since = NsSinceUpdate(page, capabilities, access);
    out.enabled_ns = access.Load(page.time_enabled) + since;
    out.running_ns = access.Load(page.time_running) + since;
    const int64_t counted = SignExtend(access.Register(index - 1), access.Load(page.pmc_width));
    out.value = static_cast<uint64_t>(access.Load(page.offset)) + static_cast<uint64_t>(counted);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (access.Lock(page) == lock) return true;
  }
  return false;
}

}  // namespace perfkit
