// The step from a frame to its caller by a row with all registers.
//
// For frames that a Rule can't express, e.g. with a CFA by rbx or r10, or with expressions. As the step of step.h, it
// does not allocate or lock, and is bounded.
#pragma once

#include "src/unwind/dwarf/cfi/cfi_row.h"
#include "src/unwind/full_registers.h"

namespace perfkit::unwind {

// Makes `registers` the caller's. Returns false if there is no caller; then `why` says why. `bias`: the address at
// which the module's address 0 is loaded.
template <class Machine, class Stack>
bool SlowStep(const CfiRow& row, const Stack& stack, uint64_t bias, FullRegisters& registers, StackEnd& why);

}  // namespace perfkit::unwind
