// Interprets usual programs. Keeps the CFA and three recipes, and computes a rule only where the location advances; if
// only the CFA's offset has changed, it updates the last rule. Returns false for all else, so that CfiProgram decides:
// expressions, registers that are saved in registers, signal frames, damage.
#include "src/unwind/dwarf/cfi/usual_program.h"

#include <dwarf.h>

#include <bit>
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
  UsualProgram(const Fde& fde, const MachineRegisters& machine)
      : machine_(machine), cie_(*fde.cie), core_(CoreOf(fde.cie->initial)) {}

  // What changes with each instruction is in local variables, which the compiler keeps in registers.
  bool Run(const Fde& fde, std::vector<RuleChange>& changes) {
    Instructions from(fde.program);
    const uint64_t code_alignment = cie_.code_alignment;
    uint64_t location = fde.begin, last_rule = kNoRule;
    while (true) {
      uint64_t delta = 0;
      while (delta == 0 && !from.done()) {
        const uint8_t op = from.Byte();
        const uint8_t low = op & 0x3f;
        // The most frequent instructions first.
        if (op - low == DW_CFA_advance_loc) {
          delta = low;
          continue;
        }
        const bool fits = op == DW_CFA_def_cfa_offset  ? SetOffset(from)
                          : op - low == DW_CFA_offset  ? Save(low, from)
                          : op - low == DW_CFA_restore ? Restore(low)
                                                       : Step(op, from, delta);
        if (!fits) return false;
      }
      if (!UpdateRule()) return false;
      if (rule_ != last_rule) changes.push_back({location, std::bit_cast<Rule>(rule_)});
      last_rule = rule_;
      if (delta == 0) return true;  // The program has ended.
      const uint64_t next = location + delta * code_alignment;
      if (next <= location) return false;
      if (next >= fde.end) return true;
      location = next;
    }
  }

 private:
  static constexpr uint64_t kNoRule = ~uint64_t{0};  // As the bits of a rule, but no rule has these.

  RowCore CoreOf(const CfiRow& row) const {
    return {row.cfa, row.Of(machine_.sp), row.Of(machine_.fp), row.Of(machine_.return_address)};
  }

  // Executes one of the less frequent instructions. Sets `delta` if it begins a row.
  bool Step(uint8_t op, Instructions& from, uint64_t& delta) {
    uint64_t number = 0;
    switch (op) {
      case DW_CFA_nop:
      case kNegateRaState:
      case kNegateRaStateWithPc: return true;
      case DW_CFA_advance_loc1: return from.Fixed<uint8_t>(delta);
      case DW_CFA_advance_loc2: return from.Fixed<uint16_t>(delta);
      case DW_CFA_advance_loc4: return from.Fixed<uint32_t>(delta);
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

  // Sets rule_ to the rule of core_. Returns false if that is kSlow. Most rows change only the CFA's offset.
  // SetOffset's numbers have at most 14 bits, so they fit.
  bool UpdateRule() {
    if (only_offset_changed_) {
      rule_ = (rule_ & ~uint64_t{UINT32_MAX}) | static_cast<uint32_t>(core_.cfa.value);
      return true;
    }
    const Rule rule = RuleFromCore(core_, machine_);
    rule_ = std::bit_cast<uint64_t>(rule);
    only_offset_changed_ = true;
    return rule.kind != RuleKind::kSlow;
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
      *recipe = {.value = static_cast<int64_t>(factor * static_cast<uint64_t>(cie_.data_alignment)),
                 .how = Recovery::kAtOffset};
      only_offset_changed_ = false;
    }
    return true;
  }

  bool Restore(uint64_t number) {
    if (Recipe* const recipe = Find(core_, number)) {
      *recipe = cie_.initial.Of(static_cast<uint32_t>(number));
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
  const Cie& cie_;
  RowCore core_;
  uint64_t rule_ = 0;                 // A rule's bits: the low half is the offset.
  bool only_offset_changed_ = false;  // At most the CFA's offset has changed since rule_ was computed.
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
  if (UsualProgram(fde, machine).Run(fde, changes)) return true;
  changes.resize(size);
  return false;
}

}  // namespace perfkit::unwind
