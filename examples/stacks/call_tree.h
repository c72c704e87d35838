// Who called whom, how often: stacks added up from their roots, with inlined calls as calls.
#pragma once

#include <perfkit/symbolizer.h>
#include <perfkit/unwinder.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace stacks {

using Location = perfkit::CodeLocation;

class CallTree {
 public:
  // `stack`: innermost first. Nothing is named yet.
  void Add(const std::vector<Location>& stack) { ++stacks_[stack]; }
  size_t distinct() const { return stacks_.size(); }

  // All calls that at least `min_percent` of the stacks went through, as an indented list, hottest first.
  void Print(perfkit::Symbolizer& symbolizer, double min_percent) const;

 private:
  struct Call {
    uint64_t samples = 0, self = 0;
    std::map<std::string, Call> callees;
  };
  static void PrintCallees(const Call& caller, uint64_t all, double min_percent, int depth);

  std::map<std::vector<Location>, uint64_t> stacks_;
};

}  // namespace stacks
