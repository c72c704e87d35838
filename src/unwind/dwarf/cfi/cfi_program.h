// Runs the programs of call frame information: the instructions of CIEs and FDEs, which make rows (DWARF 5, 6.4.2 and
// 6.4.3).
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "src/unwind/dwarf/cfi/cfi_row.h"
#include "src/unwind/dwarf/cfi/cfi_sections.h"

namespace perfkit::unwind {

// The opcodes that say whether aarch64's return address is signed, which makes no difference here: Machine::CodeAddress
// removes signatures. Not in every <dwarf.h>. The first has the number of GNU_window_save, which is for SPARC; the
// second came with signed pcs.
inline constexpr uint8_t kNegateRaState = 0x2d, kNegateRaStateWithPc = 0x2c;

// A Common Information Entry: what several FDEs share.
struct Cie {
  uint64_t code_alignment = 1;
  int64_t data_alignment = 1;
  uint8_t pointer_encoding = 0;  // DW_EH_PE_*, for the FDEs' addresses.
  // The FDEs have augmentation data, whose size comes first.
  bool sized_augmentation = false;
  base::Bytes program;
  CfiRow initial;  // The row after the CIE's program.
};

// A Frame Description Entry: the rows of a range of code, usually one function.
struct Fde {
  uint64_t begin = 0;
  uint64_t end = 0;
  base::Bytes program;
  const Cie* cie = nullptr;
};

// The interpreter of programs. Not thread-safe. One object runs all programs of a section, so that its memory is
// reused.
class CfiProgram {
 public:
  // `row` holds for the addresses [begin, end). Returns false to stop.
  using Visit = absl::FunctionRef<bool(uint64_t begin, uint64_t end, const CfiRow& row)>;

  explicit CfiProgram(const CfiSection& section) : section_(section), reader_({}) {}

  // Runs a CIE's program and sets `cie.initial`. Returns false if the program is damaged.
  bool RunInitial(Cie& cie);

  // Runs an FDE's program. The rows are contiguous, not empty, and do not exceed the FDE. Returns false if the program
  // is damaged somewhere; the rows before that are valid.
  bool Run(const Fde& fde, Visit visit);

  // Step decodes one opcode; the others execute a group of opcodes each. They return false if the program is damaged.
 private:
  bool Loop();
  bool Step(uint8_t op);
  bool StepLocation(uint8_t op);
  bool StepRegister(uint8_t op);
  bool StepCfa(uint8_t op);
  bool StepState(uint8_t op);
  // Emit the row up to a new location.
  bool Advance(uint64_t delta);
  bool MoveTo(uint64_t location);
  // Set the recipe of a register. Registers that CfiRow does not have are ignored.
  void Set(uint64_t number, Recovery how, int64_t value = 0, uint32_t other = 0);
  bool SetExpression(uint64_t number, Recovery how);
  bool SetCfa(uint64_t number, int64_t offset);
  bool Restore(uint64_t number);
  bool ReadExpression(Recipe& recipe);
  int64_t Scaled(uint64_t factor) const;

  const CfiSection& section_;
  base::DwarfReader reader_;
  const Cie* cie_ = nullptr;
  bool initial_ = false;          // Runs a CIE's program, not an FDE's.
  const Visit* visit_ = nullptr;  // Null while a CIE's program runs.
  uint64_t location_ = 0;         // The first address of the row that is being built.
  uint64_t end_ = 0;
  bool stopped_ = false;  // By the visitor, or at the end of the FDE.
  CfiRow row_;
  std::vector<CfiRow> remembered_;  // The stack of DW_CFA_remember_state.
};

}  // namespace perfkit::unwind
