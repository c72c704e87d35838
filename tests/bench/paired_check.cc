// The interval of a median of ratios: that of the sign test's tables, and it contains the true median as often as it
// says.
#include <catch2/catch.hpp>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "bench/support/paired.h"

namespace {

std::vector<double> Numbers(size_t count) {
  std::vector<double> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 1.0);
  return numbers;
}

}  // namespace

TEST_CASE("pairs: the ranks are those of the tables of the sign test for 95 %") {
  // The first of 6, the second of 10, the sixth of 20 and of 21, from either end.
  const std::vector<std::pair<size_t, double>> ranks = {{6, 1}, {8, 1}, {9, 2}, {10, 2}, {12, 3}, {20, 6}, {21, 6}};
  for (const auto& [count, rank] : ranks) {
    CAPTURE(count);
    const bench::PairedRatio ratio = bench::MedianRatio(Numbers(count));
    CHECK(ratio.low == rank);
    CHECK(ratio.high == static_cast<double>(count) + 1 - rank);
    CHECK(ratio.median == (static_cast<double>(count) + 1) / 2);
  }
}

TEST_CASE("pairs: fewer than six have no interval but all of them") {
  for (size_t count = 1; count < 6; ++count) {
    const bench::PairedRatio ratio = bench::MedianRatio(Numbers(count));
    CHECK(ratio.low == 1);
    CHECK(ratio.high == static_cast<double>(count));
  }
}

TEST_CASE("pairs: the interval misses the true median in one of twenty runs at most, also if the ratios are skew") {
  std::mt19937 random(1);
  std::lognormal_distribution<double> skew(0, 1);  // its median is 1
  constexpr int kRuns = 4'000;
  int missed = 0;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<double> ratios(21);
    for (double& ratio : ratios) ratio = skew(random);
    const bench::PairedRatio found = bench::MedianRatio(ratios);
    missed += found.low > 1 || found.high < 1 ? 1 : 0;
  }
  CHECK(missed <= kRuns / 20);
  CHECK(missed >= kRuns / 200);  // 2.7 %: one of all ratios would never miss
}

TEST_CASE("pairs: ratios of several kinds are reported apart, in percent, each with its interval") {
  bench::PairedRatios ratios;
  for (const double number : Numbers(20)) ratios.Add("slow", number), ratios.Add("fast", number / 100);
  std::map<std::string, double> counters;
  ratios.Report(counters);
  CHECK(counters.size() == 6);
  CHECK(counters["slow_percent"] == Approx(950));  // 10.5 times
  CHECK(counters["slow_low"] == Approx(500));
  CHECK(counters["slow_high"] == Approx(1'400));
  CHECK(counters["fast_percent"] == Approx(-89.5));
}
