// Interprets usual programs. Keeps the CFA and three recipes, and computes a rule only where the location advances; if
// only the CFA's offset has changed, it updates the last rule. Returns false for all else, so that CfiProgram decides:
// expressions, registers that are saved in registers, signal frames, damage.
#include "src/unwind/dwarf/cfi/usual_program.h"

#include <dwarf.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace perfkit::unwind {
namespace {

constexpr size_t kMaxUsualDepth = 2;  // Compilers nest at most 2.

// Reads the instructions of an FDE. Faster than DwarfReader: one pointer moves, and each read says itself if it failed.
class Instructions {
 public:
  explicit Instructions(base::Bytes bytes)
      : next_(reinterpret_cast<const uint8_t*>(bytes.data())), end_(next_ + bytes.size()) {}

  bool done() const { return next_ == end_; }
  // Reads a byte. Requires !done().
  uint8_t Byte() { return *next_++; }
  // Return false at the end of the bytes; Uleb also for numbers of more than two bytes, which are rare.
  bool Uleb(uint64_t& value) {
    if (next_ == end_) return false;
    value = *next_++;
    if (value < 0x80) return true;
    if (next_ == end_ || *next_ >= 0x80) return false;
    value = (value & 0x7f) | uint64_t{*next_++} << 7;
    return true;
  }
  template <class T>
  bool Fixed(uint64_t& value) {
    T number;
    if (sizeof(number) > static_cast<size_t>(end_ - next_)) return false;
    std::memcpy(&number, next_, sizeof(number));
    next_ += sizeof(number);
    value = number;
    return true;
  }

 private:
  const uint8_t* next_;
  const uint8_t* end_;
};

class UsualProgram {
 public:
  UsualProgram(const Fde& fde, const MachineRegisters& machine, std::vector<RuleChange>& changes)
      : machine_(machine),
        fde_(fde),
        changes_(changes),
        code_alignment_(fde.cie->code_alignment),
        core_(CoreOf(fde.cie->initial)),
        location_(fde.begin) {}

  bool Run() {
    Instructions from(fde_.program);
    while (!from.done() && location_ < fde_.end) {
      const uint8_t op = from.Byte();
      const uint8_t low = op & 0x3f;
      bool fits = false;
      switch (op >> 6) {
        case DW_CFA_advance_loc >> 6: fits = Advance(low); break;
        case DW_CFA_offset >> 6: fits = Save(low, from); break;
        case DW_CFA_restore >> 6: fits = Restore(low); break;
        default: fits = op == DW_CFA_def_cfa_offset ? SetOffset(from) : Step(op, from);
      }
      if (!fits) return false;
    }
    return location_ == fde_.end || MoveTo(fde_.end);
  }

 private:
  RowCore CoreOf(const CfiRow& row) const {
    return {row.cfa, row.Of(machine_.sp), row.Of(machine_.fp), row.Of(machine_.return_address)};
  }

  // Executes one of the less frequent instructions.
  bool Step(uint8_t op, Instructions& from) {
    uint64_t number = 0;
    switch (op) {
      case DW_CFA_nop:
      case kNegateRaState:
      case kNegateRaStateWithPc: return true;
      case DW_CFA_advance_loc1: return from.Fixed<uint8_t>(number) && Advance(number);
      case DW_CFA_advance_loc2: return from.Fixed<uint16_t>(number) && Advance(number);
      case DW_CFA_advance_loc4: return from.Fixed<uint32_t>(number) && Advance(number);
      case DW_CFA_def_cfa: return from.Uleb(number) && SetRegister(number) && SetOffset(from);
      case DW_CFA_def_cfa_register: return from.Uleb(number) && SetRegister(number);
      case DW_CFA_remember_state:
        if (remembered_count_ == kMaxUsualDepth) return false;
        std::construct_at(&remembered_.cores[remembered_count_++], core_);
        return true;
      case DW_CFA_restore_state:
        if (remembered_count_ == 0) return false;
        core_ = remembered_.cores[--remembered_count_];
        only_offset_changed_ = false;
        return true;
      case DW_CFA_GNU_args_size: return from.Uleb(number);
      default: return false;
    }
  }

  bool Advance(uint64_t delta) {
    const uint64_t location = location_ + delta * code_alignment_;
    return location >= location_ && MoveTo(location);
  }

  bool MoveTo(uint64_t location) {
    if (location > location_) {
      if (!UpdateRule()) return false;
      if (is_first_ || rule_ != changes_.back().rule) changes_.push_back({location_, rule_});
      is_first_ = false;
    }
    location_ = std::min(location, fde_.end);
    return true;
  }

  // Sets rule_ to the rule of core_. Returns false if that is kSlow. Most rows change only the CFA's offset.
  bool UpdateRule() {
    if (only_offset_changed_) {
      rule_.offset = static_cast<int32_t>(core_.cfa.value);
      return rule_.offset == core_.cfa.value;
    }
    rule_ = RuleFromCore(core_, machine_);
    only_offset_changed_ = true;
    return rule_.kind != RuleKind::kSlow;
  }

  // Returns the recipe of register `number` in `core` if the rule depends on it, or nullptr.
  Recipe* Find(RowCore& core, uint64_t number) const {
    if (number == machine_.fp) return &core.fp;
    if (number == machine_.return_address) return &core.pc;
    return number == machine_.sp ? &core.sp : nullptr;
  }

  bool Save(uint64_t number, Instructions& from) {
    uint64_t factor = 0;
    if (!from.Uleb(factor)) return false;
    if (Recipe* const recipe = Find(core_, number)) {
      *recipe = {.value = static_cast<int64_t>(factor * static_cast<uint64_t>(fde_.cie->data_alignment)),
                 .how = Recovery::kAtOffset};
      only_offset_changed_ = false;
    }
    return true;
  }

  bool Restore(uint64_t number) {
    if (Recipe* const recipe = Find(core_, number)) {
      *recipe = fde_.cie->initial.Of(static_cast<uint32_t>(number));
      only_offset_changed_ = false;
    }
    return true;
  }

  bool SetOffset(Instructions& from) {
    uint64_t offset = 0;
    if (!from.Uleb(offset)) return false;
    core_.cfa.value = static_cast<int64_t>(offset);
    return core_.cfa.how == Recovery::kRegister;
  }

  bool SetRegister(uint64_t number) {
    if (core_.cfa.how != Recovery::kRegister || (number != machine_.sp && number != machine_.fp)) return false;
    core_.cfa.number = static_cast<uint32_t>(number);
    only_offset_changed_ = false;
    return true;
  }

  const MachineRegisters machine_;
  const Fde& fde_;
  std::vector<RuleChange>& changes_;
  const uint64_t code_alignment_;
  RowCore core_;
  Rule rule_;
  bool only_offset_changed_ = false;  // At most the CFA's offset has changed since rule_ was computed.
  bool is_first_ = true;
  uint64_t location_;
  // Not initialized, because that takes as long as to interpret some instructions.
  union Remembered {
    Remembered() {}
    RowCore cores[kMaxUsualDepth];
  } remembered_;
  size_t remembered_count_ = 0;
};

}  // namespace

bool AppendUsualRules(const Fde& fde, const MachineRegisters& machine, std::vector<RuleChange>& changes) {
  const CfiRow& initial = fde.cie->initial;
  if (initial.signal_frame || initial.return_register != machine.return_address) return false;
  const size_t size = changes.size();
  if (UsualProgram(fde, machine, changes).Run()) return true;
  changes.resize(size);
  return false;
}

}  // namespace perfkit::unwind
