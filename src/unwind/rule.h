// A rule: what call frame information says about one pc, in eight bytes.
//
// Nearly all rows that compilers write compute the CFA by one sum and load up to two words, so such frames need no
// interpreter. All other rows are kSlow: they are evaluated with all registers, for a few frames in a thousand.
//
//   x86-64     CFA = sp or fp + offset     return address at CFA - 8            caller's fp at CFA + 8 * slot, if saved
//   aarch64    CFA = sp or fp + offset     return address in lr, or in the      caller's fp at CFA + 8 * slot, if saved
//                                          word after fp's, or at `slot` alone
//
// The caller's sp is the CFA (Canonical Frame Address: DWARF 5, 6.4). fp is rbp or x29.
#pragma once

#include <cstdint>

namespace perfkit::unwind {

// How the caller is found.
enum class RuleKind : uint8_t {
  kSp,      // CFA = sp + offset.
  kFp,      // CFA = fp + offset.
  kNone,    // No information: a chain of frame pointers may lead on; its frames are guesses.
  kRoot,    // The frame has no caller: its return address is undefined.
  kPlt,     // x86-64's lazy PLT: CFA = sp + 8, and 8 more from byte `offset` of the 16-byte entry on.
  kSignal,  // The interrupted code's registers are in the ucontext at sp + offset.
  kSlow,    // Anything else: expressions, a CFA by another register, a register that is saved in a register.
  // x86-64: no information, but the code has just set fp to 0. A frame whose fp is 0 is a root, if the stack ends near
  // it and no return address is above it; any other one is as with kNone.
  kClearsFp,
  // No information, but the code is at an entry point, or just after it: a root, unless it was called from there.
  kEntry,
  // The information is wrong, so the walk ends: libgcc installs a landing pad, and has overwritten saved registers and
  // the return address with those of the function that catches.
  kInstalls,
};

struct Rule {
  enum Flag : uint8_t {
    kRestoresFp = 1,  // The caller's fp is at `slot`; without this flag fp has not changed.
    kReturnInLr = 2,  // aarch64: the return address is still, or again, in lr.
    // aarch64: the return address is at `slot`, and fp has not changed. Without both flags it is at slot + 1.
    kReturnAtSlot = 4,
    kSignalFrame = 8,  // The pc of the next frame is not a return address.
  };

  int32_t offset = 0;  // In bytes. kSlow in a frozen table: the number of the row in FrozenCfiRows; 0 means not kept.
  int16_t slot = 0;    // In words, from the CFA.
  RuleKind kind = RuleKind::kNone;
  uint8_t flags = 0;

  bool operator==(const Rule&) const = default;
};
static_assert(sizeof(Rule) == 8);

// A change of the rule: from `begin` on, `rule` holds.
struct RuleChange {
  uint64_t begin = 0;
  Rule rule;

  bool operator==(const RuleChange&) const = default;
};

}  // namespace perfkit::unwind
