// The interpreter of CFA instructions. A program is a sequence of opcodes that modify the current row; an opcode that
// advances the location emits the row up to there. A CIE's program runs once and gives the row that each FDE's program
// starts with, and that DW_CFA_restore returns to. Programs may be hostile: the number of remembered rows and the size
// of a CIE's program are bounded, rows never go back or exceed the FDE, and an unknown opcode ends the program, because
// the size of its operands is unknown.
#include "src/unwind/dwarf/cfi/cfi_program.h"

#include <dwarf.h>

#include <algorithm>
#include <limits>

namespace perfkit::unwind {
namespace {

// Compilers nest at most 2. Without a maximum, a program could fill the memory with rows.
constexpr size_t kMaxRemembered = 32;
// Linkers' programs have about twenty bytes. In a hostile file each FDE may make its CIE's program run again.
constexpr size_t kMaxInitialBytes = 1024;

}  // namespace

bool CfiProgram::RunInitial(Cie& cie) {
  if (cie.program.size() > kMaxInitialBytes) return false;
  cie_ = &cie;
  initial_ = true;
  row_ = cie.initial;
  reader_ = base::DwarfReader(cie.program);
  visit_ = nullptr;
  if (!Loop()) return false;
  cie.initial = row_;
  return true;
}

bool CfiProgram::Run(const Fde& fde, Visit visit) {
  cie_ = fde.cie;
  initial_ = false;
  row_ = fde.cie->initial;
  reader_ = base::DwarfReader(fde.program);
  visit_ = &visit;
  location_ = fde.begin;
  end_ = fde.end;
  if (!Loop()) return false;
  if (!stopped_) MoveTo(end_);
  return true;
}

bool CfiProgram::Loop() {
  remembered_.clear();
  stopped_ = false;
  while (!reader_.done() && !stopped_) {
    if (!Step(reader_.Fixed<uint8_t>()) || !reader_.ok()) return false;
  }
  return true;
}

// The two high bits are an opcode whose operand is the low six bits. If they are 0, the low six bits are the opcode.
bool CfiProgram::Step(uint8_t op) {
  const uint8_t low = op & 0x3f;
  switch (op & 0xc0) {
    case DW_CFA_advance_loc: return Advance(low);
    case DW_CFA_offset: return Set(low, Recovery::kAtOffset, Scaled(reader_.Uleb())), true;
    case DW_CFA_restore: return Restore(low);
  }
  switch (op) {
    case DW_CFA_nop: return true;
    case DW_CFA_set_loc:
    case DW_CFA_advance_loc1:
    case DW_CFA_advance_loc2:
    case DW_CFA_advance_loc4:
    case DW_CFA_MIPS_advance_loc8: return StepLocation(op);
    case DW_CFA_def_cfa:
    case DW_CFA_def_cfa_register:
    case DW_CFA_def_cfa_offset:
    case DW_CFA_def_cfa_expression:
    case DW_CFA_def_cfa_sf:
    case DW_CFA_def_cfa_offset_sf: return StepCfa(op);
    case DW_CFA_remember_state:
    case DW_CFA_restore_state:
    case DW_CFA_GNU_args_size:
    case kNegateRaState:
    case kNegateRaStateWithPc: return StepState(op);
    default: return StepRegister(op);
  }
}

bool CfiProgram::StepLocation(uint8_t op) {
  switch (op) {
    case DW_CFA_set_loc: {
      const std::optional<uint64_t> location = ReadPointer(reader_, cie_->pointer_encoding, section_);
      return location && MoveTo(*location);
    }
    case DW_CFA_advance_loc1: return Advance(reader_.Fixed<uint8_t>());
    case DW_CFA_advance_loc2: return Advance(reader_.Fixed<uint16_t>());
    case DW_CFA_advance_loc4: return Advance(reader_.Fixed<uint32_t>());
    default: return Advance(reader_.Fixed<uint64_t>());
  }
}

// An offset or a register alone modifies a CFA that has both.
bool CfiProgram::StepCfa(uint8_t op) {
  const bool has_register = row_.cfa.how == Recovery::kRegister;
  switch (op) {
    case DW_CFA_def_cfa: {
      const uint64_t number = reader_.Uleb();
      return SetCfa(number, static_cast<int64_t>(reader_.Uleb()));
    }
    case DW_CFA_def_cfa_sf: {
      const uint64_t number = reader_.Uleb();
      return SetCfa(number, Scaled(static_cast<uint64_t>(reader_.Sleb())));
    }
    case DW_CFA_def_cfa_register: return has_register && SetCfa(reader_.Uleb(), row_.cfa.value);
    case DW_CFA_def_cfa_offset: return has_register && SetCfa(row_.cfa.number, static_cast<int64_t>(reader_.Uleb()));
    case DW_CFA_def_cfa_offset_sf:
      return has_register && SetCfa(row_.cfa.number, Scaled(static_cast<uint64_t>(reader_.Sleb())));
    default: row_.cfa.how = Recovery::kExpression; return ReadExpression(row_.cfa);
  }
}

bool CfiProgram::StepState(uint8_t op) {
  switch (op) {
    case DW_CFA_remember_state:
      if (remembered_.size() == kMaxRemembered) return false;
      remembered_.push_back(row_);
      return true;
    case DW_CFA_restore_state:
      if (remembered_.empty()) return false;
      row_ = remembered_.back();
      remembered_.pop_back();
      return true;
    case DW_CFA_GNU_args_size: reader_.Uleb(); return true;
    default: return true;  // How the return address is signed. Machine::CodeAddress removes signatures.
  }
}

bool CfiProgram::StepRegister(uint8_t op) {
  const uint64_t number = reader_.Uleb();
  switch (op) {
    case DW_CFA_offset_extended: Set(number, Recovery::kAtOffset, Scaled(reader_.Uleb())); return true;
    case DW_CFA_offset_extended_sf:
      Set(number, Recovery::kAtOffset, Scaled(static_cast<uint64_t>(reader_.Sleb())));
      return true;
    case DW_CFA_GNU_negative_offset_extended: Set(number, Recovery::kAtOffset, Scaled(-reader_.Uleb())); return true;
    case DW_CFA_val_offset: Set(number, Recovery::kOffset, Scaled(reader_.Uleb())); return true;
    case DW_CFA_val_offset_sf:
      Set(number, Recovery::kOffset, Scaled(static_cast<uint64_t>(reader_.Sleb())));
      return true;
    case DW_CFA_restore_extended: return Restore(number);
    case DW_CFA_undefined: Set(number, Recovery::kUndefined); return true;
    case DW_CFA_same_value: Set(number, Recovery::kSame); return true;
    case DW_CFA_register: {
      const uint64_t other = reader_.Uleb();
      if (other > std::numeric_limits<uint32_t>::max()) return false;
      Set(number, Recovery::kRegister, 0, static_cast<uint32_t>(other));
      return true;
    }
    case DW_CFA_expression: return SetExpression(number, Recovery::kAtExpression);
    case DW_CFA_val_expression: return SetExpression(number, Recovery::kExpression);
    default: return false;  // Unknown: so is the size of its operands.
  }
}

bool CfiProgram::Advance(uint64_t delta) { return MoveTo(location_ + delta * cie_->code_alignment); }

// Locations only increase. A CIE's program has no locations: it may not advance.
bool CfiProgram::MoveTo(uint64_t location) {
  if (initial_ || location < location_) return false;
  const uint64_t end = std::min(location, end_);
  if (end > location_ && !(*visit_)(location_, end, row_)) stopped_ = true;
  location_ = end;
  if (end == end_) stopped_ = true;
  return true;
}

void CfiProgram::Set(uint64_t number, Recovery how, int64_t value, uint32_t other) {
  if (number < CfiRow::kRegisters) row_.registers[number] = {.value = value, .number = other, .how = how};
}

bool CfiProgram::SetExpression(uint64_t number, Recovery how) {
  Recipe recipe{.how = how};
  if (!ReadExpression(recipe)) return false;
  Set(number, how, recipe.value, recipe.number);
  return true;
}

bool CfiProgram::SetCfa(uint64_t number, int64_t offset) {
  if (number > std::numeric_limits<uint32_t>::max()) return false;
  row_.cfa = {.value = offset, .number = static_cast<uint32_t>(number), .how = Recovery::kRegister};
  return true;
}

bool CfiProgram::Restore(uint64_t number) {
  if (initial_) return false;
  if (number < CfiRow::kRegisters) row_.registers[number] = cie_->initial.registers[number];
  return true;
}

bool CfiProgram::ReadExpression(Recipe& recipe) {
  const base::Bytes block = reader_.Block(reader_.Uleb());
  if (!reader_.ok() || block.size() > std::numeric_limits<uint32_t>::max()) return false;
  recipe.value = block.empty() ? 0 : block.data() - section_.bytes.data();
  recipe.number = static_cast<uint32_t>(block.size());
  return true;
}

// Offsets are divided by the CIE's factor. Absurd products wrap, as sums of addresses do.
int64_t CfiProgram::Scaled(uint64_t factor) const {
  return static_cast<int64_t>(factor * static_cast<uint64_t>(cie_->data_alignment));
}

}  // namespace perfkit::unwind
