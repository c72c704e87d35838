// Quantiles and merging of log-linear histograms: the half that only reports need.
#include "src/count/frame/histogram.h"

#include <algorithm>
#include <cmath>

namespace perfkit::count {

uint64_t Histogram::count(const RowPool& pool) const {
  uint64_t sum = 0;
  for (const uint16_t index : directory_) {
    if (index == RowPool::kNone) continue;
    for (const uint32_t step : pool.row(index)) sum += step;
  }
  return sum;
}

void Histogram::Merge(const Histogram& other, const RowPool& others_pool, RowPool& pool) {
  RaiseMax(other.max_);
  for (size_t row = 0; row < kRows; ++row) {
    if (other.directory_[row] == RowPool::kNone) continue;
    MergeRow(row, others_pool.row(other.directory_[row]), pool);
  }
}

void Histogram::MergeRow(size_t row, std::span<const uint32_t> steps, RowPool& pool) {
  // Row and step of a value are the same in all histograms, so that merging adds cell by cell.
  if (directory_[row] == RowPool::kNone) directory_[row] = pool.Take();
  for (size_t step = 0; step < RowPool::kSteps; ++step) {
    pool.cell(directory_[row] * RowPool::kSteps + step) += steps[step];
  }
}

uint64_t Histogram::Quantile(double fraction, const RowPool& pool) const {
  const uint64_t placed = count(pool);
  if (placed == 0) return max_;
  // The nearest-rank definition: the value at rank ceil(fraction * n), counted from 1.
  const double wanted = std::ceil(fraction * static_cast<double>(placed));
  const uint64_t rank = std::clamp<uint64_t>(static_cast<uint64_t>(wanted), 1, placed);
  uint64_t seen = 0;
  for (size_t row = 0; row < kRows; ++row) {
    if (directory_[row] == RowPool::kNone) continue;
    const std::span<const uint32_t> row_counts = pool.row(directory_[row]);
    for (size_t step = 0; step < RowPool::kSteps; ++step) {
      seen += row_counts[step];
      if (seen >= rank) return std::min(TopOf(row, step), max_);
    }
  }
  return max_;
}

Quantiles Histogram::Summary(const RowPool& pool) const {
  return {Quantile(0.50, pool), Quantile(0.95, pool), Quantile(0.99, pool), max_, count(pool)};
}

}  // namespace perfkit::count
