// Evaluates DWARF expressions, as far as call frame information may have them (DWARF 5, 2.5 and 6.4.2).
//
// PLTs, signal trampolines and realigned stacks have them. The bytes, the registers and the memory are all hostile:
// steps and stack are bounded, and what is odd gives nothing. No allocation, no lock: safe wherever the two functions
// are.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "src/base/cursor.h"

namespace perfkit::unwind {

// What an expression may look at.
struct ExpressionWorld {
  // The `size` (1-8) bytes of memory at `address`, as a little-endian number; nothing when they can't be read.
  absl::FunctionRef<std::optional<uint64_t>(uint64_t address, unsigned size)> memory;
  // A register by its DWARF number; nothing when it is not known.
  absl::FunctionRef<std::optional<uint64_t>(uint64_t number)> reg;
  std::optional<uint64_t> cfa = std::nullopt;  // for DW_OP_call_frame_cfa; nothing where it is still being worked out
  uint64_t bias = 0;                           // of the module, added to DW_OP_addr
};

// The top of the stack at the end. `initial` is on it at the start: the CFA for registers, nothing for the CFA itself.
std::optional<uint64_t> Evaluate(base::Bytes expression, std::optional<uint64_t> initial, const ExpressionWorld& world);

}  // namespace perfkit::unwind
