// Whole rows of a module, for the few frames that no rule is enough for, where nothing may be allocated: in a signal.
//
// A module has tens of thousands of rows, but some hundred different ones, and only those that are slow are needed. All
// are kept of a module that has frames whose CFA is found by what its callees have saved (rbx: ld.so, where it looks up
// a function that is called for the first time).
#pragma once

#include <cstdint>
#include <vector>

#include "src/unwind/dwarf/cfi_row.h"
#include "src/unwind/dwarf/frozen_table.h"
#include "src/unwind/dwarf/rule_from_row.h"

namespace perfkit::unwind {

// Does not change once built, so that any thread and any signal handler may search it.
class FrozenCfiRows {
 public:
  FrozenCfiRows() = default;

  // Of `cfi`, which is needed no more afterwards. `preserved`: bit i: calls give register i back as it was.
  FrozenCfiRows(Cfi& cfi, const MachineRegisters& machine, uint64_t preserved);

  // What Cfi::Full says, where it is kept. False elsewhere.
  bool At(uint64_t address, CfiRow& row) const;

  size_t heap_bytes() const;

 private:
  // A row without its registers of which nothing is said; these are first_ … first_ + count.
  struct Kept {
    Recipe cfa;
    uint32_t return_register;
    uint32_t first;
    uint8_t count;
    bool signal_frame;
  };
  struct Register {
    Recipe recipe;
    uint32_t number;
  };

  Recipe Own(const CfiRow& row, Recipe recipe);
  void Keep(const CfiRow& row);

  FrozenTable row_numbers_;  // the number of a row, from 1 on, as a rule's offset
  std::vector<Kept> rows_;
  std::vector<Register> registers_;
  std::vector<std::byte> expressions_;
};

}  // namespace perfkit::unwind
