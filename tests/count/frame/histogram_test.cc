// Distributions of zones, and their sums in reports, against exact quantiles of the same values, sorted.
#include "src/count/frame/histogram.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <vector>

#include "src/count/frame/zone_histogram.h"

namespace perfkit::count {
namespace {

constexpr size_t kBytes = 4096;

// Distributions of one thread.
class Distributions {
 public:
  explicit Distributions(size_t max_parts = 1000) : parts_(max_parts), memory_(kBytes, kBytes) {}

  void Add(ZoneHistogram& histogram, uint64_t value) { histogram.Add(value, {parts_, memory_}); }
  uint64_t unplaced() const { return parts_.unplaced(); }

 private:
  HistogramParts parts_;
  ZoneMemory memory_;
};

uint64_t ExactQuantile(std::vector<uint64_t> values, double fraction) {
  std::sort(values.begin(), values.end());
  const size_t rank = static_cast<size_t>(std::ceil(fraction * static_cast<double>(values.size())));
  return values[std::max<size_t>(rank, 1) - 1];
}

void CheckAgainstExact(const std::vector<uint64_t>& values) {
  Distributions all;
  ZoneHistogram histogram;
  for (const uint64_t value : values) all.Add(histogram, value);
  REQUIRE(all.unplaced() == 0);
  REQUIRE(histogram.count() == values.size());
  RowPool pool;
  Histogram sum;
  histogram.AddTo(sum, pool);
  REQUIRE(sum.count(pool) == values.size());
  CHECK(histogram.max() == *std::max_element(values.begin(), values.end()));
  CHECK(sum.max() == histogram.max());
  for (const double fraction : {0.0, 0.01, 0.25, 0.5, 0.95, 0.99, 0.999, 1.0}) {
    const uint64_t exact = ExactQuantile(values, fraction);
    const uint64_t got = histogram.Quantile(fraction);
    INFO("fraction " << fraction << " exact " << exact << " got " << got);
    REQUIRE(sum.Quantile(fraction, pool) == got);
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
  const RowPool pool;
  const Quantiles none = Histogram{}.Summary(pool);
  CHECK(none.count == 0);
  CHECK(none.max == 0);
  CHECK(ZoneHistogram{}.count() == 0);
  CHECK(ZoneHistogram{}.max() == 0);
  CHECK(ZoneHistogram{}.Quantile(0.5) == 0);
}

TEST_CASE("histogram: the sum of two equals one that saw everything") {
  std::mt19937_64 random(3);
  Distributions both, one;
  ZoneHistogram a, b, all;
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t value = random() % 1'000'000;
    both.Add(i % 3 == 0 ? a : b, value);
    one.Add(all, value);
  }
  RowPool pool;
  Histogram sum;
  a.AddTo(sum, pool);
  b.AddTo(sum, pool);
  CHECK(sum.count(pool) == all.count());
  CHECK(sum.max() == all.max());
  for (double fraction = 0; fraction <= 1; fraction += 0.01) {
    REQUIRE(sum.Quantile(fraction, pool) == all.Quantile(fraction));
  }
}

TEST_CASE("histogram: runs of one value count like any other") {
  Distributions distributions;
  ZoneHistogram a, b;
  uint64_t added = 0;
  for (const uint64_t value : {0, 0, 0, 7, 7, 0, 1000, 1000, 1000, 0}) {
    distributions.Add(a, value);
    distributions.Add(b, value / 2);  // between two adds of `a`, from the same parts
    CHECK(a.count() == ++added);
  }
  CHECK(a.Quantile(0.5) == 0);
  CHECK(a.Quantile(0.7) == 7);
  CHECK(a.max() == 1000);
  CHECK(b.max() == 500);
}

TEST_CASE("histogram: the latest value is in the quantiles and the maximum, also the largest there is") {
  Distributions distributions;
  ZoneHistogram histogram;
  distributions.Add(histogram, ~uint64_t{0});
  CHECK(histogram.max() == ~uint64_t{0});
  CHECK(histogram.Quantile(1) == ~uint64_t{0});
  distributions.Add(histogram, 5);
  CHECK(histogram.Quantile(0.5) == 5);
  CHECK(histogram.max() == ~uint64_t{0});
}

TEST_CASE("histogram: a lack of parts is counted, never overrun") {
  Distributions distributions(4);
  ZoneHistogram histogram;
  for (uint64_t value = 1; value != 0; value <<= 1) distributions.Add(histogram, value);
  distributions.Add(histogram, 1);
  CHECK(histogram.count() == 7 + 1);  // 1 to 8, 16, 32 and 64 have parts; 1 is the latest value
  CHECK(distributions.unplaced() == 64 - 7);
  CHECK(histogram.max() == uint64_t{1} << 63);
  CHECK(histogram.Quantile(1.0) == 65);
  RowPool pool;
  Histogram sum;
  histogram.AddTo(sum, pool);
  CHECK(sum.count(pool) == 7 + 1);
  CHECK(sum.max() == histogram.max());
}

}  // namespace
}  // namespace perfkit::count
