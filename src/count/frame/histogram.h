// Log-linear histograms of per-frame values, in memory of fixed size.
//
// Values below 64 are kept exactly. Above, each power of two is cut into 32 equal steps, so that a quantile is off by
// at most 1/32 of the true value. A game's counters stay within a few powers of two, so a histogram owns no
// table of its own: it takes rows of 32 steps from a pool that all histograms of a thread share.
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

// The rows of all histograms of one thread. All memory is allocated and touched at construction, because a later page
// fault would be counted as the program's. Row 0 counts the values of all histograms for which no row was left.
class RowPool {
 public:
  static constexpr size_t kSteps = 32;
  static constexpr uint16_t kNone = 0;  // the row of values for which no row was left

  // `grows`: allocates more rows when none is free; for reports.
  explicit RowPool(size_t rows, bool grows = false) : cells_((rows + 1) * kSteps), grows_(grows) {}

  // Returns a row of zeros; kNone if all are taken.
  uint16_t Take() {
    if (next_ * kSteps == cells_.size() && grows_ && next_ < UINT16_MAX) cells_.resize(cells_.size() + kSteps);
    return next_ * kSteps < cells_.size() ? static_cast<uint16_t>(next_++) : kNone;
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
  std::vector<uint32_t> cells_;
  bool grows_;
  size_t next_ = 1;
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

  // Most counters have the same value in most frames. A value equal to the last one costs one comparison.
  void Add(uint64_t value, RowPool& pool) {
    if (value != last_value_) {
      last_value_ = value;
      last_cell_ = CellOf(value, pool);
      if (value > max_) max_ = value;
    }
    ++pool.cell(last_cell_);
  }

  // Adds another histogram, whose counts are in `others_pool`.
  void Merge(const Histogram& other, const RowPool& others_pool, RowPool& pool);
  // The same in parts: the counts of one row, and the maximum.
  void MergeRow(size_t row, std::span<const uint32_t> steps, RowPool& pool);
  void RaiseMax(uint64_t value) { max_ = value > max_ ? value : max_; }

  // Returns the smallest TopOf that `fraction` of all values in rows do not exceed, at most max(); max() if no value
  // has a row.
  uint64_t Quantile(double fraction, const RowPool& pool) const;
  Quantiles Summary(const RowPool& pool) const;

  // Returns the number of values in rows. Adds all rows up: for reports.
  uint64_t count(const RowPool& pool) const;
  uint64_t max() const { return max_; }

 private:
  uint32_t CellOf(uint64_t value, RowPool& pool) {
    const size_t row = RowOf(value);
    if (directory_[row] == RowPool::kNone) [[unlikely]]
      directory_[row] = pool.Take();
    return static_cast<uint32_t>(directory_[row] * RowPool::kSteps + StepOf(value, row));
  }

  std::array<uint16_t, kRows> directory_{};
  uint32_t last_cell_ = 0;
  uint64_t last_value_ = ~uint64_t{0};  // larger than any value
  uint64_t max_ = 0;
};
static_assert(Histogram::RowOf(~uint64_t{0}) == Histogram::kRows - 1);
static_assert(Histogram::TopOf(Histogram::kRows - 1, 31) == ~uint64_t{0});

}  // namespace perfkit::count
