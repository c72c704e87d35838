// The machine that a number was measured on: what a reader needs to know to compare it with another's.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace bench {

// What, and what it is here.
std::vector<std::pair<std::string, std::string>> DescribeMachine();

}  // namespace bench
