// How often threads can be interrupted and still get on.
#pragma once

#include <signal.h>
#include <time.h>

#include <algorithm>
#include <cstdint>

#include "tests/support/work.h"

namespace perfkit::testing {

// Returns `hz`, or less, so that signals take at most an eighth of a thread's time. On some virtual machines one takes
// 60 us and more; if handling one takes until the next one comes, the thread does nothing else.
inline uint64_t Bearable(uint64_t hz) {
  static const uint64_t bearable = [] {
    constexpr int kSignals = 200;
    struct sigaction act {}, before {};
    act.sa_handler = [](int) {};
    sigaction(SIGUSR2, &act, &before);
    const uint64_t from = NowNs(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < kSignals; ++i) raise(SIGUSR2);
    const uint64_t signal_ns = (NowNs(CLOCK_THREAD_CPUTIME_ID) - from) / kSignals;
    sigaction(SIGUSR2, &before, nullptr);
    return std::max<uint64_t>(1'000'000'000 / (8 * signal_ns + 1), 200);
  }();
  return std::min(hz, bearable);
}

}  // namespace perfkit::testing
