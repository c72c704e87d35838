// A row of call frame information, whole: how the CFA and every general register of the caller are found.
//
// What a Rule (src/unwind/rule.h) cannot say is worked out from this, with the registers of the frame at hand. The
// meaning of each recipe is DWARF 5's, 6.4.1; expressions are evaluated by expression.h.
#pragma once

#include <array>
#include <cstdint>

#include "src/base/cursor.h"

namespace perfkit::unwind {

enum class Recovery : uint8_t {
  kUnspecified,   // nothing is said: by the ABI, registers that calls preserve keep their value, others are lost
  kUndefined,     // lost; of the return address: there is no caller
  kSame,          // keeps its value
  kAtOffset,      // in memory at CFA + value
  kOffset,        // is CFA + value
  kRegister,      // is register `number` + value (of a register: value is 0; of the CFA: its usual form)
  kAtExpression,  // in memory at what the expression gives, which starts with the CFA on its stack
  kExpression,    // is what the expression gives, which starts with the CFA on its stack (the CFA's own: with nothing)
};

struct Recipe {
  int64_t value = 0;    // a number of bytes; of expressions where they start in the section
  uint32_t number = 0;  // a register; of expressions their size in bytes
  Recovery how = Recovery::kUnspecified;

  bool operator==(const Recipe&) const = default;
};

struct CfiRow {
  // Those that a walk needs: x86-64's 0-16 (6 rbp, 7 rsp, 16 the return address) and aarch64's 0-32 (29 fp, 30 lr,
  // 31 sp). What is said of vector registers is read and dropped.
  static constexpr uint32_t kRegisters = 33;

  // The bytes of the expression of a recipe; valid as long as the module's bytes and its Cfi are.
  base::Bytes Expression(const Recipe& recipe) const {
    return base::Slice(section, static_cast<uint64_t>(recipe.value), recipe.number).value_or(base::Bytes());
  }
  // Unspecified for registers that are not kept.
  Recipe Of(uint32_t number) const { return number < kRegisters ? registers[number] : Recipe(); }

  Recipe cfa;
  std::array<Recipe, kRegisters> registers;
  uint32_t return_register = 0;
  bool signal_frame = false;  // the pc in the next frame is no return address
  base::Bytes section;        // that the expressions are in
};

}  // namespace perfkit::unwind
