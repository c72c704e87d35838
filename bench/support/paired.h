// Ratios of pairs: their median, and an interval that contains the true median with 95 % confidence.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace bench {

struct PairedRatio {
  double median = 0, low = 0, high = 0;
};

// By the sign test: of n pairs each one is above the true median with probability 1/2, so that the number of those
// below it is binomial, whatever the distribution is. Fewer than six pairs have no such interval: it is then all of
// them. Requires a ratio.
inline PairedRatio MedianRatio(std::vector<double> ratios) {
  std::sort(ratios.begin(), ratios.end());
  const size_t n = ratios.size();
  // The largest number of pairs that may be left out on each side.
  double probability = std::pow(0.5, static_cast<double>(n)), tail = 0;
  size_t left_out = 0;
  for (size_t k = 0; k < n / 2; ++k) {
    tail += probability;
    if (tail > 0.025) break;
    left_out = k;
    probability *= static_cast<double>(n - k) / static_cast<double>(k + 1);
  }
  const double median = n % 2 == 1 ? ratios[n / 2] : (ratios[n / 2 - 1] + ratios[n / 2]) / 2;
  return {median, ratios[left_out], ratios[n - 1 - left_out]};
}

// Ratios of several kinds, by their names.
class PairedRatios {
 public:
  void Add(const std::string& name, double ratio) { ratios_[name].push_back(ratio); }
  // Of each kind the counters "<name>_percent", "_low" and "_high": by how much the median is more than 1, and its
  // interval. `counters`: those of a benchmark::State.
  template <class Counters>
  void Report(Counters& counters) const {
    for (const auto& [name, ratios] : ratios_) {
      const PairedRatio ratio = MedianRatio(ratios);
      counters[name + "_percent"] = 100 * (ratio.median - 1);
      counters[name + "_low"] = 100 * (ratio.low - 1);
      counters[name + "_high"] = 100 * (ratio.high - 1);
    }
  }

 private:
  std::map<std::string, std::vector<double>> ratios_;
};

}  // namespace bench
