// How the caller of a piece of code is found: what call frame information says there, in eight bytes.
//
// All that compilers write for ordinary code is one of two sums and up to two loads; a walk that knows this needs no
// interpreter. What does not fit is kSlow and is worked out with all registers, a few frames in a thousand.
//
//   x86-64     CFA = sp or fp + offset     return address at CFA - 8            caller's fp at CFA + 8 * slot, if saved
//   aarch64    CFA = sp or fp + offset     return address in lr, or at the      caller's fp at CFA + 8 * slot, if saved
//                                          word after fp's, or at `slot` alone
//
// sp of the caller is the CFA (Canonical Frame Address: DWARF 5, 6.4). fp is rbp or x29.
#pragma once

#include <cstdint>

namespace perfkit::unwind {

enum class RuleKind : uint8_t {
  kNone,    // no information covers this place: a chain of frame pointers may, which has to be marked as a guess
  kSp,      // CFA = sp + offset
  kFp,      // CFA = fp + offset
  kRoot,    // has no caller: its return address is undefined
  kPlt,     // x86-64's lazy PLT: CFA = sp + 8, and 8 more from the byte `offset` of the 16-byte entry on
  kSignal,  // the registers of what was interrupted are in the ucontext at sp + offset
  kSlow,    // anything else: expressions, a CFA in another register, a register in a register
};

struct Rule {
  enum Flag : uint8_t {
    kRestoresFp = 1,    // the caller's fp is at `slot`; without it fp stays as it is
    kReturnInLr = 2,    // aarch64: not saved yet, or no more
    kReturnAtSlot = 4,  // aarch64: at `slot`, fp stays as it is; without both: at slot + 1
    kSignalFrame = 8,   // the pc in the next frame is no return address
  };

  int32_t offset = 0;  // bytes
  int16_t slot = 0;    // words from the CFA
  RuleKind kind = RuleKind::kNone;
  uint8_t flags = 0;

  bool operator==(const Rule&) const = default;
};
static_assert(sizeof(Rule) == 8);

}  // namespace perfkit::unwind
