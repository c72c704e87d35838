// Against a list of moments.
#include "src/session/kept_times.h"

#include <array>
#include <catch2/catch.hpp>
#include <random>

namespace perfkit::session {
namespace {

TEST_CASE("times overlap and cover what their moments do", "[kept_times]") {
  std::mt19937 random(GENERATE(range(1u, 100u)));
  const auto below = [&](uint32_t limit) { return random() % limit; };
  constexpr uint32_t kEnd = 60;
  std::array<std::array<bool, 2 * kEnd>, 3> is_kept{};  // by thread
  KeptTimes times;
  for (uint32_t i = below(12); i > 0; --i) {
    const uint32_t from = below(kEnd), to = from + below(10);
    const bool is_of_all = below(2) == 0;
    const uint32_t thread = below(2);  // the third one has no times of its own
    times.Add(from, to, is_of_all ? KeptTimes::kAllThreads : thread);
    for (uint32_t t = 0; t < is_kept.size(); ++t) {
      for (uint32_t at = from; at < to; ++at) is_kept[t][at] |= is_of_all || t == thread;
    }
  }
  times.Join();
  for (int i = 0; i < 200; ++i) {
    const uint32_t from = below(kEnd), to = from + below(12), thread = below(3);
    bool any = is_kept[thread][from], all = true;
    for (uint32_t at = from; at < to; ++at) {
      any = any || is_kept[thread][at];
      all = all && is_kept[thread][at];
    }
    CHECK(times.Overlaps(thread, from, to) == any);
    if (to > from) CHECK(times.Covers(thread, from, to) == all);
  }
}

}  // namespace
}  // namespace perfkit::session
