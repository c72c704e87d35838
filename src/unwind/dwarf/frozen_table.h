// The rules of a whole module in one flat table, to be searched where nothing may be allocated or locked: in a signal.
//
// A row is about a byte and a half. Rows go into lines of the processor's cache, each of which is found by where it
// begins; in it a row is one code for the usual changes ("two bytes on, sp is 8 further": a push), and a code and
// operands for others. What is usual is worked out for each module. So a look-up reads few lines of a table that is
// small to begin with: 24-44 KiB a MiB of code, where plain pairs of address and rule are 100-170.
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

  // What Cfi::At says. No allocation, no lock; at most 62 steps after a search that has no branch to mispredict.
  Rule At(uint64_t address) const;

  bool HasSlow() const;  // whether there are places that are kSlow
  size_t rows() const { return rows_; }
  size_t heap_bytes() const;

 private:
  friend class FrozenBuilder;

  // A change of rule that a code stands for: `delta` bytes after the one before.
  struct Step {
    uint16_t delta;
    uint16_t what;  // relative steps: what is added to the rule's offset, signed; others: the number of a rule
  };
  // Codes: first the relative steps, then the others. Those from kEscapes on have operands: a delta of 1, 2 or 4 bytes
  // and the number of a rule in 1 or 2.
  static constexpr unsigned kEscapes = 240, kEnd = 255;
  static constexpr size_t kLineCodes = 62;
  struct alignas(64) Line {
    uint16_t rule;  // of its first row
    uint8_t codes[kLineCodes];
  };
  static_assert(sizeof(Line) == 64);

  // `wanted`: counted from the line's first row.
  Rule RuleIn(const Line& line, uint64_t wanted) const;

  uint64_t base_ = 0;  // the first row's address
  size_t rows_ = 0;
  unsigned relative_ = 0;         // codes below are relative steps
  std::vector<uint32_t> starts_;  // of each line's first row, from base_ on, rising
  std::vector<Line> lines_;
  std::vector<Step> steps_;  // by code
  std::vector<Rule> rules_;  // by how often they are used
};

}  // namespace perfkit::unwind
