// From a frame to its caller's with all registers, by a whole row of call frame information.
//
// For what a Rule cannot say: a CFA in rbx or r10, expressions. Pure as step.h's: no allocation, no lock, bounded.
#pragma once

#include "src/unwind/dwarf/cfi_row.h"
#include "src/unwind/full_registers.h"

namespace perfkit::unwind {

// Makes `registers` the caller's. False: there is none, and `why` says why. `bias`: where the module's address 0 is.
template <class Machine, class Stack>
bool SlowStep(const CfiRow& row, const Stack& stack, uint64_t bias, FullRegisters& registers, StackEnd& why);

}  // namespace perfkit::unwind
