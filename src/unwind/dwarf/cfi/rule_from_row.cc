// Turns rows into rules: recognises the forms of rows that compilers, linkers and C libraries write. A row that is none
// of them gives kSlow, never a rule that is nearly right: a wrong rule would lead every walk through that code astray.
#include "src/unwind/dwarf/cfi/rule_from_row.h"

#include <dwarf.h>

#include <algorithm>
#include <initializer_list>
#include <limits>

namespace perfkit::unwind {
namespace {

constexpr int64_t kWord = 8;
constexpr uint32_t kX86Rcx = 2;
// Linux, arch/arm64/kernel/signal.c: struct rt_sigframe is a siginfo of 128 bytes and then the ucontext.
constexpr int32_t kArmUcontext = 128;

bool Is(base::Bytes bytes, std::initializer_list<uint8_t> expected) {
  return std::equal(bytes.begin(), bytes.end(), expected.begin(), expected.end(),
                    [](std::byte a, uint8_t b) { return a == std::byte{b}; });
}

bool IsAt(const Recipe& recipe, int64_t offset) { return recipe.how == Recovery::kAtOffset && recipe.value == offset; }
bool IsKept(const Recipe& recipe) { return recipe.how == Recovery::kUnspecified || recipe.how == Recovery::kSame; }

// Returns true if the caller's sp is the CFA, which is the default.
bool IsSpTheCfa(const Recipe& sp) {
  return sp.how == Recovery::kUnspecified || (sp.how == Recovery::kOffset && sp.value == 0);
}

// Returns true if register `number` is in memory at rsp + offset.
bool IsWordAt(const CfiRow& row, uint32_t number, uint64_t offset) {
  const Recipe recipe = row.Of(number);
  return recipe.how == Recovery::kAtExpression &&
         Is(row.Expression(recipe),
            {DW_OP_breg7, static_cast<uint8_t>((offset & 0x7f) | 0x80), static_cast<uint8_t>(offset >> 7)});
}

// glibc, sysdeps/unix/sysv/linux/x86_64/sigaction.c: the ucontext is at rsp, and each register is a word in it (gregs
// from byte 40 on). The CFA is the saved rsp. rbp is at 120, rsp at 160, rip at 168.
bool IsX86Signal(const CfiRow& row) {
  return row.cfa.how == Recovery::kExpression && Is(row.Expression(row.cfa), {DW_OP_breg7, 0xa0, 0x01, DW_OP_deref}) &&
         IsWordAt(row, kX86Registers.return_address, 168) && IsWordAt(row, kX86Registers.fp, 120);
}

// Linux, arch/arm64/kernel/vdso/sigreturn.S: the CFI describes only the frame record, which leads past the interrupted
// code, since "unwinders and debuggers already have baked-in strategies". So this form is recognised.
bool IsArmSignal(const CfiRow& row) {
  return row.cfa.how == Recovery::kRegister && row.cfa.number == kArmRegisters.fp && row.cfa.value == 0 &&
         IsAt(row.Of(kArmRegisters.fp), 0) && IsAt(row.Of(kArmRegisters.return_address), kWord);
}

// binutils, bfd/elfxx-x86.c, elf_x86_64_eh_frame_lazy_plt and _ibt_plt: CFA = rsp + 8 + ((rip & 15) >= n) * 8. n is the
// offset after the entry's push: 11, or 10 in entries that start with endbr64. Returns n, or 0 for other rows.
int32_t PltPush(const CfiRow& row) {
  if (row.cfa.how != Recovery::kExpression) return 0;
  const base::Bytes bytes = row.Expression(row.cfa);
  for (const uint8_t push : {uint8_t{11}, uint8_t{10}}) {
    if (Is(bytes, {DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and, static_cast<uint8_t>(DW_OP_lit0 + push),
                   DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus})) {
      return push;
    }
  }
  return 0;
}

// Returns true for the row at the jump to a landing pad, at the end of libgcc's functions that call
// __builtin_eh_return: the two registers that a landing pad reads, rax and rdx, have been saved, and the CFA is that of
// the catching function, in rcx (gcc's ix86_expand_epilogue).
bool IsLandingJump(const CfiRow& row, const MachineRegisters& machine) {
  return !machine.is_arm && row.cfa.how == Recovery::kRegister && row.cfa.number == kX86Rcx && row.cfa.value == kWord &&
         row.Of(0).how == Recovery::kAtOffset && row.Of(1).how == Recovery::kAtOffset;
}

bool ToSlot(int64_t offset, int16_t& slot) {
  slot = static_cast<int16_t>(offset / kWord);
  return offset % kWord == 0 && slot == offset / kWord;
}

// Sets the CFA as sp or fp + offset. Returns false if it is anything else.
bool FillCfa(const Recipe& cfa, const Recipe& sp, const MachineRegisters& machine, Rule& rule) {
  if (cfa.how != Recovery::kRegister || !IsSpTheCfa(sp)) return false;
  if (cfa.number != machine.sp && cfa.number != machine.fp) return false;
  rule.kind = cfa.number == machine.sp ? RuleKind::kSp : RuleKind::kFp;
  rule.offset = static_cast<int32_t>(cfa.value);
  return rule.offset == cfa.value;
}

bool FillFp(const Recipe& fp, Rule& rule) {
  if (IsKept(fp)) return true;
  rule.flags |= Rule::kRestoresFp;
  return fp.how == Recovery::kAtOffset && ToSlot(fp.value, rule.slot);
}

// Requires FillFp: the return address is relative to fp's slot.
bool FillReturn(const Recipe& pc, const MachineRegisters& machine, Rule& rule) {
  if (!machine.is_arm) return IsAt(pc, -kWord);
  if (IsKept(pc)) {
    rule.flags |= Rule::kReturnInLr;
    return true;
  }
  if ((rule.flags & Rule::kRestoresFp) != 0) return IsAt(pc, (int64_t{rule.slot} + 1) * kWord);
  rule.flags |= Rule::kReturnAtSlot;
  return pc.how == Recovery::kAtOffset && ToSlot(pc.value, rule.slot);
}

}  // namespace

Rule RuleFromCore(const RowCore& core, const MachineRegisters& machine) {
  Rule rule;
  const bool fits =
      FillCfa(core.cfa, core.sp, machine, rule) && FillFp(core.fp, rule) && FillReturn(core.pc, machine, rule);
  return fits ? rule : Rule{.kind = RuleKind::kSlow};
}

Rule RuleFromRow(const CfiRow& row, const MachineRegisters& machine) {
  const Recipe pc = row.Of(row.return_register);
  const uint8_t flags = row.signal_frame ? Rule::kSignalFrame : 0;
  if (pc.how == Recovery::kUndefined) return {.kind = RuleKind::kRoot, .flags = flags};
  if (row.cfa.how == Recovery::kUnspecified) return {};  // Without a CFA nothing can be recovered.
  if (row.signal_frame && (machine.is_arm ? IsArmSignal(row) : IsX86Signal(row))) {
    return {.offset = machine.is_arm ? kArmUcontext : 0, .kind = RuleKind::kSignal, .flags = flags};
  }
  if (IsLandingJump(row, machine)) return {.kind = RuleKind::kInstalls, .flags = flags};
  const Rule slow{.kind = RuleKind::kSlow, .flags = flags};
  if (row.return_register != machine.return_address) return slow;
  if (!machine.is_arm && IsAt(pc, -kWord) && IsKept(row.Of(machine.fp)) && IsSpTheCfa(row.Of(machine.sp))) {
    if (const int32_t push = PltPush(row)) return {.offset = push, .kind = RuleKind::kPlt, .flags = flags};
  }
  Rule rule = RuleFromCore({row.cfa, row.Of(machine.sp), row.Of(machine.fp), pc}, machine);
  rule.flags |= flags;
  return rule;
}

}  // namespace perfkit::unwind
