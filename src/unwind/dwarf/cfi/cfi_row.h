// A row of call frame information with all registers: how the CFA and each general register of the caller are
// recovered.
//
// For rows that a Rule (src/unwind/rule.h) can't express. DWARF 5, 6.4.1 defines each recovery; expression.h evaluates
// the expressions.
#pragma once

#include <array>
#include <cstdint>

#include "src/base/cursor.h"

namespace perfkit::unwind {

// How a value of the caller is recovered.
enum class Recovery : uint8_t {
  kUnspecified,   // Not mentioned. By the ABI, registers that functions preserve keep their value, others are lost.
  kUndefined,     // Lost. For the return address: there is no caller.
  kSame,          // Keeps its value.
  kAtOffset,      // Is in memory at CFA + value.
  kOffset,        // Is CFA + value.
  kRegister,      // Is register `number` + value. For registers, value is 0; this is the usual form of the CFA.
  kAtExpression,  // Is in memory at the expression's result. The expression starts with the CFA on its stack.
  kExpression,    // Is the expression's result. It starts with the CFA on its stack; the CFA's own starts with nothing.
};

struct Recipe {
  int64_t value = 0;    // In bytes; for expressions their offset in the section.
  uint32_t number = 0;  // A register; for expressions their size in bytes.
  Recovery how = Recovery::kUnspecified;

  bool operator==(const Recipe&) const = default;
};

struct CfiRow {
  // The registers that unwinding needs: 0-16 of x86-64 (6 is rbp, 7 rsp, 16 the return address) and 0-32 of aarch64 (29
  // is fp, 30 lr, 31 sp). Recipes of vector registers are ignored.
  static constexpr uint32_t kRegisters = 33;

  // Returns the bytes of a recipe's expression. Valid as long as `section`.
  base::Bytes Expression(const Recipe& recipe) const {
    return base::Slice(section, static_cast<uint64_t>(recipe.value), recipe.number).value_or(base::Bytes());
  }
  // Returns the recipe of a register; kUnspecified for registers that a row does not have.
  Recipe Of(uint32_t number) const { return number < kRegisters ? registers[number] : Recipe(); }

  Recipe cfa;
  std::array<Recipe, kRegisters> registers;
  uint32_t return_register = 0;
  bool signal_frame = false;  // The pc of the next frame is not a return address.
  base::Bytes section;        // The bytes that contain the expressions.
};

}  // namespace perfkit::unwind
