// Runs the programs of call frame information: what a CIE and an FDE say, as rows (DWARF 5, 6.4.2 and 6.4.3).
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "src/unwind/dwarf/cfi_row.h"
#include "src/unwind/dwarf/cfi_sections.h"

namespace perfkit::unwind {

// What FDEs have in common (Common Information Entry).
struct Cie {
  uint64_t code_alignment = 1;
  int64_t data_alignment = 1;
  uint8_t pointer_encoding = 0;  // DW_EH_PE_*, of the FDEs' addresses
  bool sized_augmentation = false;
  base::Bytes program;
  CfiRow initial;  // what the program makes of nothing
};

// What is said of a piece of code, mostly a function (Frame Description Entry).
struct Fde {
  uint64_t begin = 0;
  uint64_t end = 0;
  base::Bytes program;
  const Cie* cie = nullptr;
};

// The machine that runs programs; used again and again, so that it allocates nothing in the long run.
class CfiProgram {
 public:
  // From `begin` to before `end` `row` holds. False to stop.
  using Visit = absl::FunctionRef<bool(uint64_t begin, uint64_t end, const CfiRow& row)>;

  explicit CfiProgram(const CfiSection& section) : section_(section), reader_({}) {}

  // Fills in `cie.initial`. False when its program makes no sense.
  bool RunInitial(Cie& cie);

  // Rows without gaps, none empty, none beyond the FDE. A program that is damaged somewhere has no rows from there on:
  // false; what it said before stands.
  bool Run(const Fde& fde, Visit visit);

 private:
  bool Loop();
  bool Step(uint8_t op);
  bool StepLocation(uint8_t op);
  bool StepRegister(uint8_t op);
  bool StepCfa(uint8_t op);
  bool StepState(uint8_t op);
  bool Advance(uint64_t delta);
  bool MoveTo(uint64_t location);
  void Set(uint64_t number, Recovery how, int64_t value = 0, uint32_t other = 0);
  bool SetExpression(uint64_t number, Recovery how);
  bool SetCfa(uint64_t number, int64_t offset);
  bool Restore(uint64_t number);
  bool ReadExpression(Recipe& recipe);
  int64_t Scaled(uint64_t factor) const;

  const CfiSection& section_;
  base::DwarfReader reader_;
  const Cie* cie_ = nullptr;
  bool initial_ = false;          // running a CIE's
  const Visit* visit_ = nullptr;  // nothing while a CIE's program runs
  uint64_t location_ = 0;
  uint64_t end_ = 0;
  bool stopped_ = false;  // by the visitor, or at the FDE's end
  CfiRow row_;
  std::vector<CfiRow> remembered_;
};

}  // namespace perfkit::unwind
