// Intervals of confidence for shares and rates that were counted, and for differences of two of them.
#pragma once

namespace perfkit::profile {

// An estimate and its interval.
struct Estimate {
  double value = 0, low = 0, high = 0;
};

// How many standard deviations on both sides of the mean hold `confidence` of a normal distribution: 1.96 for 0.95.
double NormalQuantile(double confidence);

// Wilson's interval for a share that was seen in `samples` independent samples: all of [0, 1] if there are none.
Estimate ShareEstimate(double share, double samples, double quantile);

// The score interval for a rate: `count` independent events, `scale` each.
Estimate RateEstimate(double count, double scale, double quantile);

// The interval of after - before, by Newcombe's method 10.
Estimate DifferenceOf(const Estimate& before, const Estimate& after);

}  // namespace perfkit::profile
