// Log-linear histograms: the steps that all distributions share, and sums of distributions for reports.
//
// Values below 64 are kept exactly. Above, each power of two is cut into 32 equal steps, so that a quantile is off by
// at most 1/32 of the true value. Zones and tasks count in memory of their own (zone_histogram.h,
// src/count/task/shared_histogram.h); a report adds their steps up in a Histogram.
//
//   value -> row (one for each power of two) -> directory: which row of the pool -> step within the row
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "perfkit/frame.h"

namespace perfkit::count {

// The rows of the histograms of one report.
class RowPool {
 public:
  static constexpr size_t kSteps = 32;
  static constexpr uint16_t kNone = 0;  // no row: row 0 counts the values for which there was none

  // Returns a row of zeros; kNone if there are as many as an index can tell apart.
  uint16_t Take() {
    if (cells_.size() / kSteps == UINT16_MAX) return kNone;
    cells_.resize(cells_.size() + kSteps);
    return static_cast<uint16_t>(cells_.size() / kSteps - 1);
  }
  uint32_t& cell(size_t index) { return cells_[index]; }
  std::span<const uint32_t> row(uint16_t index) const { return std::span(cells_).subspan(index * kSteps, kSteps); }
  // Returns the number of values for which no row was left: they are in the maxima, but not in the quantiles.
  uint64_t unplaced() const {
    uint64_t sum = 0;
    for (const uint32_t count : row(kNone)) sum += count;
    return sum;
  }

 private:
  std::vector<uint32_t> cells_ = std::vector<uint32_t>(kSteps);
};

// One distribution: a directory of 120 bytes. Its counts are in the pool that it was filled with.
class Histogram {
 public:
  static constexpr size_t kRows = 60;  // rows 0 and 1: the exact values; then one for each power of two up to 2^63

  // Return the row of a value, and its step in the row. They cost two shifts and a count of leading zeros.
  static constexpr size_t RowOf(uint64_t value) { return value < 64 ? value >> 5 : 63 - __builtin_clzll(value) - 4; }
  static constexpr size_t StepOf(uint64_t value, size_t row) {
    return row < 2 ? value & 31 : (value >> (row - 1)) & 31;
  }
  // Returns the largest value of a step. Quantiles use it, so they are never too low.
  static constexpr uint64_t TopOf(size_t row, size_t step) {
    return row < 2 ? row * 32 + step : ((uint64_t{33} + step) << (row - 1)) - 1;
  }
  // Returns the rank of a quantile of `count` values, from 1 to `count`: ceil(fraction * count), the nearest rank.
  static uint64_t RankOf(double fraction, uint64_t count);

  // Add the counts of steps of one row, the first of which is `row` * RowPool::kSteps + the step in it, and a maximum.
  void AddSteps(size_t first, std::span<const uint32_t> steps, RowPool& pool);
  void RaiseMax(uint64_t value) { max_ = value > max_ ? value : max_; }

  // Returns the smallest TopOf that `fraction` of all values in rows do not exceed, at most max(); max() if no value
  // has a row.
  uint64_t Quantile(double fraction, const RowPool& pool) const;
  Quantiles Summary(const RowPool& pool) const;

  // Returns the number of values in rows. Adds all rows up: for reports.
  uint64_t count(const RowPool& pool) const;
  uint64_t max() const { return max_; }

 private:
  std::array<uint16_t, kRows> directory_{};
  uint64_t max_ = 0;
};
static_assert(Histogram::RowOf(~uint64_t{0}) == Histogram::kRows - 1);
static_assert(Histogram::TopOf(Histogram::kRows - 1, 31) == ~uint64_t{0});

}  // namespace perfkit::count
