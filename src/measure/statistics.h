// The statistics of a Cost: minimum, median, and an interval for the median that assumes nothing about the
// distribution.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "perfkit/measure.h"

namespace perfkit::measure {

// Returns the median, the lower one of two. Requires that `values` is not empty.
template <class T>
T Median(std::vector<T> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Returns how many of `n` sorted values to leave out at either end, so that the rest contains the median with a
// probability of 95 % or more. The number of values below the median is binomial(n, 1/2); leaving out k has the error 2
// * P(B < k + 1) (David and Nagaraja, Order Statistics, 7.1).
constexpr size_t LeftOutAtEachEnd(size_t n) {
  double weight = 1;  // P(B = 0)
  for (size_t i = 0; i < n; ++i) weight /= 2;
  double below = weight;  // P(B <= k)
  size_t k = 0;
  while (k + 1 < (n + 1) / 2) {
    weight = weight * static_cast<double>(n - k) / static_cast<double>(k + 1);
    if (2 * (below + weight) > 0.05) break;
    below += weight;
    ++k;
  }
  return k;
}

// Returns the interval for the median of the population of `values`. With fewer than 6 values, even the interval of all
// of them has less than 95 %. Requires that `values` is not empty.
template <class T>
Interval MedianInterval(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  const size_t out = LeftOutAtEachEnd(values.size());
  return {static_cast<double>(values[out]), static_cast<double>(values[values.size() - 1 - out])};
}

}  // namespace perfkit::measure
