// Converts a row of call frame information to a rule of eight bytes, which is possible for nearly all rows.
#pragma once

#include "src/unwind/dwarf/cfi/cfi_row.h"
#include "src/unwind/rule.h"

namespace perfkit::unwind {

// Register numbers of DWARF: psABI x86-64, figure 3.36; DWARF for the Arm 64-bit Architecture, table 1.
struct MachineRegisters {
  uint32_t fp = 0;
  uint32_t sp = 0;
  uint32_t return_address = 0;
  bool is_arm = false;
};
inline constexpr MachineRegisters kX86Registers{.fp = 6, .sp = 7, .return_address = 16};
inline constexpr MachineRegisters kArmRegisters{.fp = 29, .sp = 31, .return_address = 30, .is_arm = true};

// The four recipes that decide a rule of kind kSp or kFp.
struct RowCore {
  Recipe cfa, sp, fp, pc;
};

// Returns the rule of a row whose recipes are `core`, if that is kSp or kFp; else kSlow, even where RuleFromRow knows a
// better kind. Requires that the row is not a signal frame's.
Rule RuleFromCore(const RowCore& core, const MachineRegisters& machine);

// Returns kInstalls for the row at the jump to a landing pad (InstallCode finds the code before it), kSlow if no other
// rule expresses the row, and kNone if the row has no CFA.
Rule RuleFromRow(const CfiRow& row, const MachineRegisters& machine);

}  // namespace perfkit::unwind
