// Newcombe, "Interval estimation for the difference between independent proportions" (1998); Wilson (1927).
//
// Score intervals ask which true values would make what was seen no outlier. Unlike value +- quantile * deviation, they
// stay in range and keep a width for shares of 0 and 1: a function without samples may have had a few.
#include "src/profile/interval.h"

#include <algorithm>
#include <cmath>

namespace perfkit::profile {

double NormalQuantile(double confidence) {
  // Bisection: erf(x / sqrt(2)) is the share of a normal distribution within x deviations. 100 halvings use up a
  // double.
  double low = 0, high = 40;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (std::erf(middle / std::sqrt(2.0)) < confidence ? low : high) = middle;
  }
  return low;
}

Estimate ShareEstimate(double share, double samples, double quantile) {
  if (samples <= 0) return {share, 0, 1};
  // The solutions p of |p - share| = quantile * sqrt(p (1 - p) / samples).
  const double z2 = quantile * quantile / samples, center = (share + z2 / 2) / (1 + z2);
  const double half = std::sqrt(z2 * std::max(share * (1 - share), 0.0) + z2 * z2 / 4) / (1 + z2);
  // Rounding must not leave the estimate outside of its interval.
  return {share, std::clamp(center - half, 0.0, share), std::clamp(center + half, share, 1.0)};
}

Estimate RateEstimate(double count, double scale, double quantile) {
  // The solutions m of |m - count| = quantile * sqrt(m): the variance of a Poisson distribution is its mean.
  const double z2 = quantile * quantile, center = count + z2 / 2, half = quantile * std::sqrt(count + z2 / 4);
  return {count * scale, std::max(center - half, 0.0) * scale, (center + half) * scale};
}

Estimate DifferenceOf(const Estimate& before, const Estimate& after) {
  // The lower end combines how far `after` may be less and `before` more, which are independent; the upper end the
  // rest.
  const double value = after.value - before.value;
  return {value, value - std::hypot(after.value - after.low, before.high - before.value),
          value + std::hypot(after.high - after.value, before.value - before.low)};
}

}  // namespace perfkit::profile
