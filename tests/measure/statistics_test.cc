// The median and its interval, against what binomial tables say.
#include "src/measure/statistics.h"

#include <catch2/catch.hpp>
#include <numeric>
#include <random>

namespace perfkit::measure {
namespace {

TEST_CASE("medians of odd and even numbers of values", "[statistics]") {
  CHECK(Median(std::vector<int64_t>{7}) == 7);
  CHECK(Median(std::vector<int64_t>{9, 1, 5}) == 5);
  CHECK(Median(std::vector<int64_t>{4, 1, 3, 2}) == 2);
  CHECK(Median(std::vector<double>{0.5, -0.5, 0.25}) == 0.25);
}

// Conover, Practical Nonparametric Statistics, table A3: n, and the rank of the lower end (from 1) for 95 %.
TEST_CASE("how many values an interval leaves out", "[statistics]") {
  CHECK(LeftOutAtEachEnd(1) == 0);
  CHECK(LeftOutAtEachEnd(5) == 0);   // all five: 93.75 %
  CHECK(LeftOutAtEachEnd(6) == 0);   // 96.9 %
  CHECK(LeftOutAtEachEnd(9) == 1);   // 96.1 %
  CHECK(LeftOutAtEachEnd(11) == 1);  // 98.8 %
  CHECK(LeftOutAtEachEnd(12) == 2);  // 96.1 %
  CHECK(LeftOutAtEachEnd(31) == 9);  // 97.1 %
}

TEST_CASE("the interval leaves out as many values at either end", "[statistics]") {
  for (size_t n = 1; n < 50; ++n) {
    std::vector<int64_t> values(n);
    std::iota(values.rbegin(), values.rend(), 0);
    const Interval interval = MedianInterval(values);
    CHECK(interval.low == static_cast<double>(LeftOutAtEachEnd(n)));
    CHECK(interval.low + interval.high == static_cast<double>(n - 1));
  }
}

TEST_CASE("the interval covers the median of the population", "[statistics]") {
  std::mt19937_64 random(3);
  std::lognormal_distribution<double> skewed(0, 1);  // its median is 1
  int covered = 0;
  for (int i = 0; i < 2000; ++i) {
    std::vector<double> values(31);
    for (double& value : values) value = skewed(random);
    const Interval interval = MedianInterval(values);
    covered += interval.low <= 1 && 1 <= interval.high;
  }
  CHECK(covered > 1900);  // 95 %
  CHECK(covered < 1990);
}

}  // namespace
}  // namespace perfkit::measure
