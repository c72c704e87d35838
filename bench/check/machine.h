// The machine of the measurements, as far as a reader needs it to compare numbers.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace bench {

// Returns pairs of a property and its value here.
std::vector<std::pair<std::string, std::string>> DescribeMachine();

}  // namespace bench
