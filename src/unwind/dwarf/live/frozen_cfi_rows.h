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

  // Copies the rows of `cfi`, and its rules into `rules`: the offset of a rule that is kSlow becomes the number of its
  // row here. `preserved`: bit i means that functions preserve register i.
  // `on_landing_jump`: as in FrozenTable's constructor.
  FrozenCfiRows(
      Cfi& cfi, const MachineRegisters& machine, uint64_t preserved, FrozenTable& rules,
      absl::FunctionRef<void(uint64_t address)> on_landing_jump = [](uint64_t) {});

  // Writes the row that Cfi::Full returns for `address` to `row`. Returns false if it was not kept. Requires
  // the `rules` that the constructor filled.
  bool At(uint64_t address, const FrozenTable& rules, CfiRow& row) const;

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
  bool IsKept(const Kept& kept, const CfiRow& row) const;
  // Returns true if a kept recipe is the same as one of `row`.
  bool IsSame(const Recipe& kept, const CfiRow& row, const Recipe& recipe) const;

  // Rules whose offset is a number: 1 + index in rows_; 0 means not kept. Empty if only slow rows are kept.
  FrozenTable row_numbers_;
  std::vector<Kept> rows_;
  std::vector<Register> registers_;
  std::vector<std::byte> expressions_;
};

}  // namespace perfkit::unwind
