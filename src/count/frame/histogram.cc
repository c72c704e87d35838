// Sums and quantiles of log-linear histograms, for reports.
#include "src/count/frame/histogram.h"

#include <algorithm>
#include <cmath>

namespace perfkit::count {

uint64_t Histogram::RankOf(double fraction, uint64_t count) {
  const double wanted = std::ceil(fraction * static_cast<double>(count));
  return std::clamp<uint64_t>(static_cast<uint64_t>(wanted), 1, count);
}

// Row and step of a value are the same in all histograms, so that they are added up step by step.
void Histogram::AddSteps(size_t first, std::span<const uint32_t> steps, RowPool& pool) {
  const size_t row = first / RowPool::kSteps;
  if (directory_[row] == RowPool::kNone) directory_[row] = pool.Take();
  const size_t cell = directory_[row] * RowPool::kSteps + first % RowPool::kSteps;
  for (size_t i = 0; i < steps.size(); ++i) pool.cell(cell + i) += steps[i];
}

uint64_t Histogram::count(const RowPool& pool) const {
  uint64_t sum = 0;
  for (const uint16_t index : directory_) {
    if (index == RowPool::kNone) continue;
    for (const uint32_t step : pool.row(index)) sum += step;
  }
  return sum;
}

uint64_t Histogram::Quantile(double fraction, const RowPool& pool) const {
  const uint64_t placed = count(pool);
  if (placed == 0) return max_;
  const uint64_t rank = RankOf(fraction, placed);
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
