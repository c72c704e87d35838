// Evaluates the DWARF expressions that call frame information may contain (DWARF 5, 2.5 and 6.4.2).
//
// PLTs, signal trampolines and functions that realign their stack have them. The bytes, the registers and the memory
// may be hostile: the steps and the stack are bounded, and a damaged expression has no result. Does not allocate or
// lock; async-signal-safe if the two functions are.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "src/base/cursor.h"

namespace perfkit::unwind {

// The values that an expression may use.
struct ExpressionWorld {
  // Returns the `size` (1 to 8) bytes of memory at `address` as a little-endian number, or nullopt if they can't be
  // read.
  absl::FunctionRef<std::optional<uint64_t>(uint64_t address, unsigned size)> memory;
  // Returns a register by its DWARF number, or nullopt if it is not known.
  absl::FunctionRef<std::optional<uint64_t>(uint64_t number)> reg;
  std::optional<uint64_t> cfa = std::nullopt;  // For DW_OP_call_frame_cfa; nullopt while the CFA itself is evaluated.
  uint64_t bias = 0;                           // Of the module; added to DW_OP_addr.
};

// Returns the top of the expression's stack at its end, or nullopt if it fails. `initial` is pushed first: the CFA for
// registers, nullopt for the CFA itself.
std::optional<uint64_t> Evaluate(base::Bytes expression, std::optional<uint64_t> initial, const ExpressionWorld& world);

}  // namespace perfkit::unwind
