// The distributions of a thread's zones, in as little memory as their values need.
//
// They have the steps of Histogram (histogram.h), which adds them up for reports. A distribution owns no directory, but
// a list of parts: 16 steps, half a row of Histogram. Most counters have one value in nearly all frames, so that the
// frames since the last change of the value are only a number: a counter that never changes needs no part.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "perfkit/frame.h"
#include "src/count/frame/histogram.h"
#include "src/count/frame/zone_memory.h"

namespace perfkit::count {

// Counts of 16 neighbouring steps.
struct HistogramPart {
  static constexpr size_t kSteps = 16;

  HistogramPart* next = nullptr;
  size_t index = 0;  // of the first step, in units of kSteps
  std::array<uint32_t, kSteps> counts{};
};

// The memory for the parts of all distributions of a thread.
class HistogramParts {
 public:
  explicit HistogramParts(size_t max_parts) : left_(max_parts) {}

  // Returns an empty part; nullptr if there are `max_parts`, or no memory is left.
  HistogramPart* Take(ZoneMemory& memory);

  // Number of values for which there was no part: they are in the maxima, but not in the quantiles.
  uint64_t unplaced() const { return unplaced_; }
  void AddUnplaced(uint64_t values) { unplaced_ += values; }

 private:
  size_t left_;
  uint64_t unplaced_ = 0;
};

// What a distribution takes its parts from.
struct HistogramSource {
  HistogramParts& parts;
  ZoneMemory& memory;
};

// One distribution. Not thread-safe.
class ZoneHistogram {
 public:
  void Add(uint64_t value, const HistogramSource& source) {
    if (value == last_value_) {
      ++run_;
      return;
    }
    if (run_ != 0) Settle(source);
    last_value_ = value;
    run_ = 1;
  }

  // Adds its values to `sum`, whose counts are in `pool`.
  void AddTo(Histogram& sum, RowPool& pool) const;

  // As Histogram's. Does not allocate.
  uint64_t Quantile(double fraction) const;
  uint64_t count() const;
  uint64_t max() const { return run_ != 0 ? std::max(max_, last_value_) : max_; }

 private:
  // Adds the run of the last value to its part, which is usually the first of its list.
  void Settle(const HistogramSource& source) {
    if (last_value_ > max_) max_ = last_value_;
    const size_t row = Histogram::RowOf(last_value_);
    const size_t step = row * RowPool::kSteps + Histogram::StepOf(last_value_, row);
    const size_t index = step / HistogramPart::kSteps;
    HistogramPart*& first = parts_[index % 2];
    if (first == nullptr || first->index != index) [[unlikely]] {
      if (!BringForward(index, source)) return;
    }
    first->counts[step % HistogramPart::kSteps] += run_;
  }
  // Makes the part with this index the first of its list. If there is none and no new one, counts the run as unplaced,
  // and returns false.
  bool BringForward(size_t index, const HistogramSource& source);

  template <class Visit>
  void ForEachPart(Visit visit) const {
    for (const HistogramPart* first : parts_) {
      for (const HistogramPart* part = first; part != nullptr; part = part->next) visit(*part);
    }
  }

  // Two lists, for even and odd indexes: values often alternate between two neighbours.
  std::array<HistogramPart*, 2> parts_{};
  uint64_t last_value_ = 0;
  uint64_t max_ = 0;  // without the last value
  uint32_t run_ = 0;  // number of latest values that are the last one; they are in no part
};

}  // namespace perfkit::count
