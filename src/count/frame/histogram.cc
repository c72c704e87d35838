// Quantiles and merging of log-linear histograms: the half that only reports need.
#include "src/count/frame/histogram.h"

#include <algorithm>
#include <cmath>

namespace perfkit::count {

void Histogram::Merge(const Histogram& other, const RowPool& others_pool, RowPool& pool) {
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
  unplaced_ += other.unplaced_;
  for (size_t row = 0; row < kRows; ++row) {
    if (other.directory_[row] == RowPool::kNone) continue;
    const RowPool::Row& from = others_pool.row(other.directory_[row]);
    if (directory_[row] == RowPool::kNone) directory_[row] = pool.Take();
    for (size_t step = 0; step < RowPool::kSteps; ++step) {
      if (directory_[row] == RowPool::kNone) {
        unplaced_ += from[step];
      } else {
        pool.row(directory_[row])[step] += from[step];
      }
    }
  }
}

uint64_t Histogram::Quantile(double fraction, const RowPool& pool) const {
  const uint64_t placed = count_ - unplaced_;
  if (placed == 0) return max_;
  // The nearest-rank definition: the value at rank ceil(fraction * n), counted from 1.
  const double wanted = std::ceil(fraction * static_cast<double>(placed));
  const uint64_t rank = std::clamp<uint64_t>(static_cast<uint64_t>(wanted), 1, placed);
  uint64_t seen = 0;
  for (size_t row = 0; row < kRows; ++row) {
    if (directory_[row] == RowPool::kNone) continue;
    for (size_t step = 0; step < RowPool::kSteps; ++step) {
      seen += pool.row(directory_[row])[step];
      if (seen >= rank) return std::min(TopOf(row, step), max_);
    }
  }
  return max_;
}

Quantiles Histogram::Summary(const RowPool& pool) const {
  return {Quantile(0.50, pool), Quantile(0.95, pool), Quantile(0.99, pool), max_, count_};
}

}  // namespace perfkit::count
