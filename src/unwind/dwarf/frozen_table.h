// The rules of a whole module in one flat table, to be searched where nothing may be allocated or locked: in a signal.
//
// A row is six bytes: where it begins and the number of its rule; rules are few and shared. Rows that say the same as
// the one before are left out, and gaps are rows of kNone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/unwind/dwarf/cfi.h"
#include "src/unwind/rule.h"

namespace perfkit::unwind {

// Does not change once built, so that any thread and any signal handler may search it.
class FrozenTable {
 public:
  FrozenTable() = default;  // kNone everywhere

  // The rows of `cfi`, which is needed no more afterwards. Code that reaches over 4 GiB is cut off there; the rules
  // after the 65,535 first different ones are kSlow.
  explicit FrozenTable(Cfi& cfi);

  // What Cfi::At says. No allocation, no lock, no branch that depends on `address` but the loop's own.
  Rule At(uint64_t address) const;

  size_t rows() const { return offsets_.size(); }
  size_t bytes() const;

 private:
  uint64_t base_ = 0;              // the first row's address
  std::vector<uint32_t> offsets_;  // from base_, rising
  std::vector<uint16_t> indices_;  // of rules_, for each offset
  std::vector<Rule> rules_;
};

}  // namespace perfkit::unwind
