// Computes the rules of a function without whole rows, for the programs that nearly all functions have.
//
// A rule depends on the CFA, sp, fp and the return address. The usual instructions move the location, change the CFA's
// offset, and save other registers, which are skipped: so a program of a few registers is run, where CfiProgram copies
// and converts rows of 33.
#pragma once

#include <cstdint>
#include <vector>

#include "src/unwind/dwarf/cfi/cfi_program.h"
#include "src/unwind/dwarf/cfi/rule_from_row.h"

namespace perfkit::unwind {

// A change of the rule: from `begin` on, `rule` holds.
struct RuleChange {
  uint64_t begin = 0;
  Rule rule;

  bool operator==(const RuleChange&) const = default;
};

// Appends the changes of rule that the rows of `fde` make, as RuleFromRow has them. Returns false, and appends nothing,
// if the program has any other instruction, is damaged, or has a row whose rule is neither kSp nor kFp.
bool AppendUsualRules(const Fde& fde, const MachineRegisters& machine, std::vector<RuleChange>& changes);

}  // namespace perfkit::unwind
