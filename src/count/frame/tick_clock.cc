// Pairs of readings of both clocks. Because a thread may be interrupted between two readings, a pair is the narrowest
// of some brackets (ticks, ns, ticks). The true tick of `ns` is within the bracket, so its middle is wrong by at most
// half its width.
#include "src/count/frame/tick_clock.h"

#include "perfkit/detail/user_page.h"
#include "src/sys/clock.h"

namespace perfkit::count {

TickClock::TickClock(uint64_t ns_per_tick_q32)
    : pairs_{ReadPair()}, ns_per_tick_(static_cast<double>(ns_per_tick_q32) * 0x1p-32) {}

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

double TickClock::RateOf(const Pair& from, const Pair& to) {
  return static_cast<double>(to.ns - from.ns) / static_cast<double>(to.ticks - from.ticks);
}

void TickClock::Read() {
  const Pair now = ReadPair();
  constexpr uint64_t kMinNs = 100'000;  // in less time the error of a reading would distort the rate
  if (now.ns < pairs_.back().ns + kMinNs || now.ticks <= pairs_.back().ticks) return;
  if (pairs_.size() == kMaxPairs) pairs_.erase(pairs_.begin());
  pairs_.push_back(now);
  ns_per_tick_ = RateOf(pairs_.front(), now);
}

// Searches from the last pair, because most ticks are recent. A single interval's rate is inexact, so it is used only
// within that interval.
uint64_t TickClock::ToNs(uint64_t ticks) const {
  size_t next = pairs_.size();
  while (next > 0 && pairs_[next - 1].ticks > ticks) --next;
  const Pair& from = pairs_[next == 0 ? 0 : next - 1];
  const bool is_between = next != 0 && next != pairs_.size();
  const double ns_per_tick = is_between ? RateOf(from, pairs_[next]) : ns_per_tick_;
  const auto ahead = static_cast<double>(static_cast<int64_t>(ticks - from.ticks));
  return from.ns + static_cast<uint64_t>(static_cast<int64_t>(ahead * ns_per_tick));
}

}  // namespace perfkit::count
