// How far the shares of one measurement are from those of another.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>

namespace perfkit::session {

// Returns the largest difference of two shares, in points of percent; 100 if one of the sums is 0. `a` and `b` are
// amounts of the same kinds.
inline double DistanceInPoints(std::span<const double> a, std::span<const double> b) {
  const double sum_a = std::accumulate(a.begin(), a.end(), 0.0), sum_b = std::accumulate(b.begin(), b.end(), 0.0);
  if (sum_a == 0 || sum_b == 0) return 100;
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(100 * a[i] / sum_a - 100 * b[i] / sum_b));
  return most;
}

}  // namespace perfkit::session
