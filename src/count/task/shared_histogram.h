// Distributions that all threads add to, without a lock and without allocating.
//
// The same steps as Histogram's (src/count/frame/histogram.h), with atomic counts. Every number here is a statistic of
// its own, so all accesses are relaxed.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/count/frame/histogram.h"

namespace perfkit::count {

// Rows for all histograms of a TaskCounter. The constructor allocates and touches all memory. Thread-safe.
class SharedRowPool {
 public:
  static constexpr uint16_t kNone = 0;
  explicit SharedRowPool(size_t rows) : cells_((rows + 1) * RowPool::kSteps) {}

  // Returns a row of zeros, or kNone if all are taken.
  uint16_t Take() noexcept {
    size_t row = next_.load(std::memory_order_relaxed);
    do {
      if ((row + 1) * RowPool::kSteps > cells_.size()) return kNone;
    } while (!next_.compare_exchange_weak(row, row + 1, std::memory_order_relaxed));
    return static_cast<uint16_t>(row);
  }
  std::atomic<uint32_t>& cell(uint16_t row, size_t step) { return cells_[row * RowPool::kSteps + step]; }
  uint32_t count(uint16_t row, size_t step) const {
    return cells_[row * RowPool::kSteps + step].load(std::memory_order_relaxed);
  }
  // Number of values for which no row was left.
  std::atomic<uint64_t> unplaced{0};

 private:
  std::vector<std::atomic<uint32_t>> cells_;
  std::atomic<size_t> next_{1};
};

// Thread-safe.
class SharedHistogram {
 public:
  void Add(uint64_t value, SharedRowPool& pool) noexcept {
    uint64_t max = max_.load(std::memory_order_relaxed);
    while (value > max && !max_.compare_exchange_weak(max, value, std::memory_order_relaxed)) {
    }
    const size_t row = Histogram::RowOf(value);
    const uint16_t taken = RowFor(row, pool);
    if (taken == SharedRowPool::kNone) {
      pool.unplaced.fetch_add(1, std::memory_order_relaxed);
    } else {
      pool.cell(taken, Histogram::StepOf(value, row)).fetch_add(1, std::memory_order_relaxed);
    }
  }

  // Returns the quantiles of the values so far.
  Quantiles Summary(const SharedRowPool& pool) const {
    Histogram histogram;
    RowPool rows;
    std::array<uint32_t, RowPool::kSteps> steps;
    for (size_t row = 0; row < Histogram::kRows; ++row) {
      const uint16_t taken = directory_[row].load(std::memory_order_relaxed);
      if (taken == SharedRowPool::kNone) continue;
      for (size_t step = 0; step < steps.size(); ++step) steps[step] = pool.count(taken, step);
      histogram.AddSteps(row * steps.size(), steps, rows);
    }
    histogram.RaiseMax(max_.load(std::memory_order_relaxed));
    return histogram.Summary(rows);
  }

 private:
  // Two threads may take a row for the same entry at the same time. One of the two rows is then never used.
  uint16_t RowFor(size_t row, SharedRowPool& pool) noexcept {
    uint16_t taken = directory_[row].load(std::memory_order_relaxed);
    if (taken != SharedRowPool::kNone) return taken;
    const uint16_t fresh = pool.Take();
    if (fresh == SharedRowPool::kNone) return fresh;
    return directory_[row].compare_exchange_strong(taken, fresh, std::memory_order_relaxed) ? fresh : taken;
  }

  std::array<std::atomic<uint16_t>, Histogram::kRows> directory_{};
  std::atomic<uint64_t> max_{0};
};

}  // namespace perfkit::count
