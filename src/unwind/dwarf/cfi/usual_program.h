// Computes the rules of a function directly from its program, without building CfiRows. CfiProgram runs the rare
// programs for which this is not possible.
//
// A rule depends only on the CFA and on the recipes of sp, fp and the return address. This interpreter keeps those four
// and skips the instructions for other registers; CfiProgram keeps 33 recipes.
#pragma once

#include <cstdint>
#include <vector>

#include "src/unwind/dwarf/cfi/cfi_program.h"
#include "src/unwind/dwarf/cfi/rule_from_row.h"

namespace perfkit::unwind {

// Appends the changes that RuleFromRow gives for the rows of `fde`. Returns false, and appends nothing, if the code is
// a signal frame, the program has an instruction that is not usual or is damaged before the FDE's end, or a row's rule
// is neither kSp nor kFp.
bool AppendUsualRules(const Fde& fde, const MachineRegisters& machine, std::vector<RuleChange>& changes);

}  // namespace perfkit::unwind
