// Pairs of readings of both clocks. A pair is the narrowest of some brackets (ticks, ns, ticks), because a thread may
// be interrupted between two readings: the true moment lies in the bracket, and its middle is at most half of it off.
#include "src/count/frame/tick_clock.h"

#include "perfkit/detail/user_page.h"
#include "src/sys/clock.h"

namespace perfkit::count {

TickClock::TickClock(uint64_t ns_per_tick_q32)
    : base_(ReadPair()), ns_per_tick_(static_cast<double>(ns_per_tick_q32) * 0x1p-32) {}

TickClock::Pair TickClock::ReadPair() {
  constexpr int kTries = 8;
  Pair best;
  uint64_t narrowest = UINT64_MAX;
  for (int i = 0; i < kTries; ++i) {
    const uint64_t before = ReadTicks();
    const uint64_t ns = sys::ClockNs(CLOCK_MONOTONIC);
    const uint64_t width = ReadTicks() - before;
    if (width >= narrowest) continue;
    narrowest = width;
    best = {before + width / 2, ns};
  }
  return best;
}

void TickClock::Read() {
  const Pair now = ReadPair();
  constexpr uint64_t kMinNs = 100'000;  // less, and the rate would be that of the error
  if (now.ns < base_.ns + kMinNs || now.ticks <= base_.ticks) return;
  ns_per_tick_ = static_cast<double>(now.ns - base_.ns) / static_cast<double>(now.ticks - base_.ticks);
  base_ = now;
}

uint64_t TickClock::ToNs(uint64_t ticks) const {
  const auto ahead = static_cast<double>(static_cast<int64_t>(ticks - base_.ticks));
  return base_.ns + static_cast<uint64_t>(static_cast<int64_t>(ahead * ns_per_tick_));
}

}  // namespace perfkit::count
