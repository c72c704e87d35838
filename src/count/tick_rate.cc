// Finds the rate of the tick counter: published by the kernel, fixed by the architecture, or measured by two pairs of
// (ticks, clock), 10 ms apart. Each pair is the fastest of many, which nothing interrupted; together they give the rate
// to about 2 parts in a million. The clock is CLOCK_MONOTONIC_RAW, because NTP slews the others.
#include "src/count/tick_rate.h"

#include <time.h>

#include "src/sys/kernel.h"

namespace perfkit::count {
namespace {

constexpr uint64_t kMillisecondNs = 1'000'000;
constexpr uint64_t kApartNs = 10 * kMillisecondNs;
constexpr int kPairsEachEnd = 64;

struct Pair {
  uint64_t ticks, ns, latency;
};

uint64_t RawNs() {
  timespec now{};
  sys::kernel().clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

Pair TakePair() {
  const uint64_t before = ReadTicks();
  const uint64_t ns = RawNs();
  const uint64_t latency = ReadTicks() - before;
  return {before + latency / 2, ns, latency};
}

Pair FastestPair() {
  Pair best = TakePair();
  for (int i = 1; i < kPairsEachEnd; ++i) {
    const Pair pair = TakePair();
    if (pair.latency < best.latency) best = pair;
  }
  return best;
}

TickRate FromRatio(uint64_t ns, uint64_t ticks) {
  if (ticks == 0 || ns == 0) return {};
  __extension__ using Wide = unsigned __int128;
  return {.ns_per_tick_q32 = static_cast<uint64_t>((Wide{ns} << 32) / ticks),
          .ticks_per_ms = static_cast<uint64_t>(Wide{ticks} * kMillisecondNs / ns)};
}

// For machines that publish no rate: x86-64 and riscv64 without a page that has it.
[[maybe_unused]] TickRate Measure() {
  const Pair first = FastestPair();
  while (RawNs() - first.ns < kApartNs) {
  }
  const Pair second = FastestPair();
  return FromRatio(second.ns - first.ns, second.ticks - first.ticks);
}

#if defined(__aarch64__)
TickRate Architected() {
  uint64_t hz;
  asm volatile("mrs %0, cntfrq_el0" : "=r"(hz));
  return FromRatio(1'000'000'000, hz);
}
#endif

}  // namespace

TickRate TickRateOf(const UserPage& page) {
  if (!kHasTicks) return {};  // Ignores the page: it describes a counter that is not read here.
  const uint32_t mult = page.time_mult;
  const unsigned shift = page.time_shift;
  if (page.has_time() && mult != 0 && shift < 64) {
    return FromRatio(mult, uint64_t{1} << shift);  // ns = ticks * mult >> shift
  }
#if defined(__aarch64__)
  static const TickRate rate = Architected();
#else
  static const TickRate rate = Measure();
#endif
  return rate;
}

}  // namespace perfkit::count
