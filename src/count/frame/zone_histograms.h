// The histograms of a tree's zones: for each zone one of its wall time, and one for each event, all with one pool.
//
// All memory is allocated at construction. Values for which the pool has no row left count in the maxima, not in the
// quantiles (RowPool).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/count/frame/histogram.h"

namespace perfkit::count {

// Not thread-safe.
class ZoneHistograms {
 public:
  ZoneHistograms(size_t zones, size_t events)
      : stride_(1 + events),
        pool_(std::min<size_t>(zones * kRowsPerZone, UINT16_MAX - 1)),
        histograms_(zones * stride_) {}

  // Index 0 is the wall in nanoseconds, 1 + i is event i.
  const Histogram& At(size_t zone, size_t which) const { return histograms_[zone * stride_ + which]; }
  void Add(size_t zone, size_t which, uint64_t value) { histograms_[zone * stride_ + which].Add(value, pool_); }
  const RowPool& pool() const { return pool_; }

 private:
  // Few counters spread over more than one or two powers of two.
  static constexpr size_t kRowsPerZone = 8;

  size_t stride_;
  RowPool pool_;
  std::vector<Histogram> histograms_;
};

}  // namespace perfkit::count
