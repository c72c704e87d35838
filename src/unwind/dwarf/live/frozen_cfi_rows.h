// The whole rows of a module for the few frames whose rule is kSlow, for use in signal handlers.
//
// A module has tens of thousands of rows, but only some hundred different ones, and only the slow ones are needed.
// All rows are kept for a module that computes a CFA from a register that its callees save, as ld.so does with rbx when
// it resolves a function at its first call: to recover that register, the callees' rows are needed, too.
#pragma once

#include <cstdint>
#include <vector>

#include "src/unwind/dwarf/cfi/cfi_row.h"
#include "src/unwind/dwarf/cfi/rule_from_row.h"
#include "src/unwind/dwarf/live/frozen_table.h"

namespace perfkit::unwind {

// Immutable, so any thread and any signal handler may search it.
class FrozenCfiRows {
 public:
  FrozenCfiRows() = default;

  // Copies the rows of `cfi`. `preserved`: bit i means that functions preserve register i.
  FrozenCfiRows(Cfi& cfi, const MachineRegisters& machine, uint64_t preserved);

  // Writes the row that Cfi::Full returns for `address` to `row`. Returns false if it was not kept.
  bool At(uint64_t address, CfiRow& row) const;

  size_t heap_bytes() const;

 private:
  // A row. Its registers other than kUnspecified ones are registers_[first, first + count).
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

  // Returns the recipe with its expression copied to expressions_.
  Recipe Own(const CfiRow& row, Recipe recipe);
  void Keep(const CfiRow& row);

  FrozenTable row_numbers_;  // Rules whose offset is 1 + index in rows_; 0 means not kept.
  std::vector<Kept> rows_;
  std::vector<Register> registers_;
  std::vector<std::byte> expressions_;
};

}  // namespace perfkit::unwind
