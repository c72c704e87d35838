// Histograms against exact quantiles of the same values, sorted.
#include "src/count/frame/histogram.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <vector>

namespace perfkit::count {
namespace {

uint64_t ExactQuantile(std::vector<uint64_t> values, double fraction) {
  std::sort(values.begin(), values.end());
  const size_t rank = static_cast<size_t>(std::ceil(fraction * static_cast<double>(values.size())));
  return values[std::max<size_t>(rank, 1) - 1];
}

void CheckAgainstExact(const std::vector<uint64_t>& values) {
  RowPool pool(64);
  Histogram histogram;
  for (const uint64_t value : values) histogram.Add(value, pool);
  REQUIRE(pool.unplaced() == 0);
  REQUIRE(histogram.count(pool) == values.size());
  CHECK(histogram.max() == *std::max_element(values.begin(), values.end()));
  for (const double fraction : {0.0, 0.01, 0.25, 0.5, 0.95, 0.99, 0.999, 1.0}) {
    const uint64_t exact = ExactQuantile(values, fraction);
    const uint64_t got = histogram.Quantile(fraction, pool);
    INFO("fraction " << fraction << " exact " << exact << " got " << got);
    // Errs upwards, by less than 1/32; not at all below 64.
    REQUIRE(got >= exact);
    if (exact < 64) {
      REQUIRE(got == exact);
    } else {
      REQUIRE(got - exact <= exact / 32);
    }
  }
}

TEST_CASE("histogram: every value lies in its own step", "[slow]") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200'000; ++i) {
    const uint64_t value = random() >> (random() % 64);
    const size_t row = Histogram::RowOf(value);
    const size_t step = Histogram::StepOf(value, row);
    const uint64_t top = Histogram::TopOf(row, step);
    REQUIRE(row < Histogram::kRows);
    REQUIRE(value <= top);
    REQUIRE(top - value <= value / 32);
    REQUIRE(Histogram::RowOf(top) == row);
    REQUIRE(Histogram::StepOf(top, row) == step);
    if (top != ~uint64_t{0}) REQUIRE((Histogram::RowOf(top + 1) != row || Histogram::StepOf(top + 1, row) == step + 1));
  }
}

TEST_CASE("histogram: quantiles are within 1/32 of the exact ones") {
  std::mt19937_64 random(2);
  SECTION("small, exact") {
    std::vector<uint64_t> values;
    for (int i = 0; i < 5000; ++i) values.push_back(random() % 64);
    CheckAgainstExact(values);
  }
  SECTION("frame times around 16 ms with a long tail") {
    std::lognormal_distribution<double> times(std::log(16e6), 0.5);
    std::vector<uint64_t> values;
    for (int i = 0; i < 20'000; ++i) values.push_back(static_cast<uint64_t>(times(random)));
    CheckAgainstExact(values);
  }
  SECTION("all magnitudes") {
    std::vector<uint64_t> values;
    for (int i = 0; i < 20'000; ++i) values.push_back(random() >> (random() % 64));
    CheckAgainstExact(values);
  }
  SECTION("one value") { CheckAgainstExact({123'456'789}); }
  SECTION("the ends of the range") { CheckAgainstExact({0, ~uint64_t{0}}); }
}

TEST_CASE("histogram: nothing added has no quantiles but says so") {
  const RowPool pool(1);
  const Quantiles none = Histogram{}.Summary(pool);
  CHECK(none.count == 0);
  CHECK(none.max == 0);
}

TEST_CASE("histogram: a merged one equals one that saw everything") {
  std::mt19937_64 random(3);
  RowPool pool_a(64), pool_b(64), pool_all(64);
  Histogram a, b, all;
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t value = random() % 1'000'000;
    (i % 3 == 0 ? a : b).Add(value, i % 3 == 0 ? pool_a : pool_b);
    all.Add(value, pool_all);
  }
  a.Merge(b, pool_b, pool_a);
  CHECK(a.count(pool_a) == all.count(pool_all));
  CHECK(a.max() == all.max());
  for (double fraction = 0; fraction <= 1; fraction += 0.01) {
    REQUIRE(a.Quantile(fraction, pool_a) == all.Quantile(fraction, pool_all));
  }
}

TEST_CASE("histogram: runs of one value count like any other") {
  RowPool pool(8);
  Histogram a, b;
  for (const uint64_t value : {0, 0, 0, 7, 7, 0, 1000, 1000, 1000, 0}) {
    a.Add(value, pool);
    b.Add(value / 2, pool);  // between two adds of `a`, in the same pool
  }
  CHECK(a.count(pool) == 10);
  CHECK(b.count(pool) == 10);
  CHECK(a.Quantile(0.5, pool) == 0);
  CHECK(a.Quantile(0.7, pool) == 7);
  CHECK(a.max() == 1000);
  CHECK(b.max() == 500);
}

TEST_CASE("histogram: an empty pool is counted, never overrun") {
  RowPool pool(2);
  Histogram histogram;
  for (uint64_t value = 1; value != 0; value <<= 1) histogram.Add(value, pool);  // 60 rows wanted, 2 there
  CHECK(histogram.count(pool) == 6);  // rows 0 and 1 hold 1, 2, 4, 8, 16 and 32
  CHECK(pool.unplaced() == 64 - 6);
  CHECK(histogram.max() == uint64_t{1} << 63);
  CHECK(histogram.Quantile(1.0, pool) == 32);
  RowPool merged_pool(1);
  Histogram merged;
  merged.Merge(histogram, pool, merged_pool);
  CHECK(merged.count(merged_pool) == 5);
  CHECK(merged_pool.unplaced() == 1);
  CHECK(merged.max() == histogram.max());
}

}  // namespace
}  // namespace perfkit::count
