// libdw's interpretation of the same call frame information, as an oracle: it has an interpreter of its own.
//
// libdw searches records linearly in files whose .eh_frame_hdr comes after .eh_frame, so it gets the image without
// section headers. Its result for a range of addresses is wrong after DW_CFA_restore_state, so it is asked for each pc.
#pragma once

#include <dlfcn.h>
#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <libelf.h>
#include <link.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "src/unwind/dwarf/cfi/cfi_row.h"
#include "src/unwind/rule.h"

namespace perfkit::testing {

// Where the library is that programs here run with; "" when it cannot be loaded.
inline std::string PathOfLibrary(const char* name) {
  void* const library = dlopen(name, RTLD_LAZY);
  link_map* map = nullptr;
  if (library == nullptr || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) return "";
  const std::string path = map->l_name;
  dlclose(library);
  return path;
}

// One register's, or the CFA's, as operations.
struct Location {
  Dwarf_Op memory[3];
  Dwarf_Op* ops = nullptr;
  size_t count = 0;

  bool IsUndefined() const { return count == 0 && ops == memory; }
  bool IsSame() const { return count == 0 && ops == nullptr; }
  bool Is(size_t at, unsigned atom) const { return at < count && ops[at].atom == atom; }

  // In memory at CFA + offset.
  bool IsAtCfa(int64_t& offset) const {
    offset = count == 2 ? static_cast<int64_t>(ops[1].number) : 0;
    return Is(0, DW_OP_call_frame_cfa) && (count == 1 || (count == 2 && Is(1, DW_OP_plus_uconst)));
  }
};

class Oracle {
 public:
  // nullptr where libdw finds nothing.
  using Row = std::unique_ptr<Dwarf_Frame, decltype(&std::free)>;

  explicit Oracle(std::string image, bool keep_sections = false) : image_(std::move(image)) {
    elf_version(EV_CURRENT);
    auto* const header = reinterpret_cast<Elf64_Ehdr*>(image_.data());
    is_arm_ = header->e_machine == EM_AARCH64;
    if (!keep_sections) header->e_shoff = header->e_shnum = header->e_shstrndx = 0;
    elf_ = elf_memory(image_.data(), image_.size());
    if (keep_sections) dwarf_ = dwarf_begin_elf(elf_, DWARF_C_READ, nullptr);
    cfi_ = keep_sections ? dwarf_getcfi(dwarf_) : dwarf_getcfi_elf(elf_);
  }
  ~Oracle() {
    if (dwarf_ == nullptr && cfi_ != nullptr) dwarf_cfi_end(cfi_);
    if (dwarf_ != nullptr) dwarf_end(dwarf_);
    elf_end(elf_);
  }
  Oracle(const Oracle&) = delete;
  Oracle& operator=(const Oracle&) = delete;

  bool ok() const { return cfi_ != nullptr; }
  bool is_arm() const { return is_arm_; }

  Row At(uint64_t pc) const {
    Dwarf_Frame* found = nullptr;
    if (dwarf_cfi_addrframe(cfi_, pc, &found) != 0) found = nullptr;
    return Row(found, &std::free);
  }

  // The rule that says the same as `row`, worked out from libdw's operations.
  unwind::Rule RuleFromRow(Dwarf_Frame* row) const;

  // Whether `row` and what perfkit makes of it are the same, register by register; "" or what is not.
  std::string Differs(Dwarf_Frame* row, const unwind::CfiRow& full) const;

 private:
  std::string image_;
  bool is_arm_ = false;
  Elf* elf_ = nullptr;
  Dwarf* dwarf_ = nullptr;
  Dwarf_CFI* cfi_ = nullptr;
};

inline bool Get(Dwarf_Frame* row, int number, Location& location) {
  return dwarf_frame_register(row, number, location.memory, &location.ops, &location.count) == 0;
}

// CFA = register + offset.
inline bool IsSum(const Location& cfa, int64_t& number, int64_t& offset) {
  if (cfa.count != 1) return false;
  const Dwarf_Op& op = cfa.ops[0];
  const bool indexed = op.atom == DW_OP_bregx;
  number = indexed ? static_cast<int64_t>(op.number) : op.atom - DW_OP_breg0;
  offset = static_cast<int64_t>(indexed ? op.number2 : op.number);
  return indexed || (op.atom >= DW_OP_breg0 && op.atom <= DW_OP_breg31);
}

// The eleven operations of a lazy PLT. libdw shows nine, because bregs include their offsets.
inline int32_t PltPush(const Location& cfa) {
  constexpr unsigned kOps[] = {DW_OP_breg7, DW_OP_breg16, DW_OP_lit15, DW_OP_and, 0,
                               DW_OP_ge,    DW_OP_lit3,   DW_OP_shl,   DW_OP_plus};
  if (cfa.count != std::size(kOps) || cfa.ops[0].number != 8 || cfa.ops[1].number != 0) return 0;
  for (size_t i = 0; i < std::size(kOps); ++i) {
    if (i != 4 && cfa.ops[i].atom != kOps[i]) return 0;
  }
  const int32_t push = cfa.ops[4].atom - DW_OP_lit0;
  return push == 10 || push == 11 ? push : 0;
}

inline unwind::Rule Oracle::RuleFromRow(Dwarf_Frame* row) const {
  using unwind::Rule;
  using unwind::RuleKind;
  bool signal = false;
  const int return_number = dwarf_frame_info(row, nullptr, nullptr, &signal);
  const uint8_t flags = signal ? Rule::kSignalFrame : 0;
  Location cfa, pc, fp, sp;
  const Rule slow{.kind = RuleKind::kSlow, .flags = flags};
  const int fp_number = is_arm_ ? 29 : 6, sp_number = is_arm_ ? 31 : 7;
  // libdw calls a column that nothing is said of undefined where calls do not keep it: glibc's aarch64 has a function
  // that returns to what is in x15.
  if (return_number != (is_arm_ ? 30 : 16)) return slow;
  if (!Get(row, return_number, pc) || !Get(row, fp_number, fp) || !Get(row, sp_number, sp)) return slow;
  if (pc.IsUndefined()) return {.kind = RuleKind::kRoot, .flags = flags};
  if (dwarf_frame_cfa(row, &cfa.ops, &cfa.count) != 0) return slow;
  int64_t number = 0, offset = 0, pc_at = 0, fp_at = 0;
  const bool pc_saved = pc.IsAtCfa(pc_at), fp_saved = fp.IsAtCfa(fp_at), fp_kept = fp.IsSame();
  const bool sum = IsSum(cfa, number, offset);
  if (signal && !is_arm_ && cfa.count == 2 && cfa.ops[0].number == 160 && cfa.Is(1, DW_OP_deref)) {
    return {.kind = RuleKind::kSignal, .flags = flags};
  }
  Location rax, rdx;
  int64_t rax_at = 0, rdx_at = 0;
  if (!is_arm_ && sum && number == 2 && offset == 8 && Get(row, 0, rax) && Get(row, 1, rdx) && rax.IsAtCfa(rax_at) &&
      rdx.IsAtCfa(rdx_at)) {
    return {.kind = RuleKind::kInstalls, .flags = flags};
  }
  if (is_arm_ ? !pc_saved && !pc.IsSame() : !pc_saved || pc_at != -8) return slow;
  const bool sp_is_cfa = sp.count == 2 && sp.Is(0, DW_OP_call_frame_cfa) && sp.Is(1, DW_OP_stack_value);
  if (!is_arm_ && sp_is_cfa && fp_kept && PltPush(cfa) != 0) {
    return {.offset = PltPush(cfa), .kind = RuleKind::kPlt, .flags = flags};
  }
  if (!sum || !sp_is_cfa || (number != fp_number && number != sp_number) || !(fp_kept || fp_saved)) return slow;
  Rule rule{.offset = static_cast<int32_t>(offset),
            .kind = number == sp_number ? RuleKind::kSp : RuleKind::kFp,
            .flags = flags};
  if (fp_saved) {
    rule.flags |= Rule::kRestoresFp;
    rule.slot = static_cast<int16_t>(fp_at / 8);
  }
  if (is_arm_ && !pc_saved) rule.flags |= Rule::kReturnInLr;
  if (is_arm_ && pc_saved && fp_saved && pc_at != fp_at + 8) return slow;
  if (is_arm_ && pc_saved && !fp_saved) {
    rule.flags |= Rule::kReturnAtSlot;
    rule.slot = static_cast<int16_t>(pc_at / 8);
  }
  const int64_t slot_at = fp_saved ? fp_at : (rule.flags & Rule::kReturnAtSlot) != 0 ? pc_at : 0;
  return offset == rule.offset && slot_at == int64_t{rule.slot} * 8 ? rule : slow;
}

inline std::string Oracle::Differs(Dwarf_Frame* row, const unwind::CfiRow& full) const {
  using unwind::Recovery;
  Location cfa;
  if (dwarf_frame_cfa(row, &cfa.ops, &cfa.count) != 0) return "no CFA";
  int64_t number = 0, offset = 0;
  const bool sum = IsSum(cfa, number, offset);
  // An expression may be of one operation, too: a register with an offset, spelled out.
  const bool same_cfa = full.cfa.how == Recovery::kRegister
                            ? sum && number == full.cfa.number && offset == full.cfa.value
                            : full.cfa.how == Recovery::kExpression && full.cfa.number > 0 &&
                                  full.Expression(full.cfa)[0] == std::byte{cfa.ops[0].atom};
  if (!same_cfa) return "CFA";
  for (int i = 0; i < (is_arm_ ? 32 : 17); ++i) {
    Location location;
    const unwind::Recipe recipe = full.registers[static_cast<size_t>(i)];
    if (!Get(row, i, location)) return "no register";
    int64_t at = 0;
    const bool in_memory = location.IsAtCfa(at),
               is_value = location.count > 0 && location.Is(location.count - 1, DW_OP_stack_value);
    bool same = false;
    switch (recipe.how) {
      case Recovery::kUnspecified:
        same = location.IsSame() || location.IsUndefined() || (is_value && location.count == 2);
        break;
      case Recovery::kUndefined: same = location.IsUndefined(); break;
      case Recovery::kSame: same = location.IsSame(); break;
      case Recovery::kAtOffset: same = in_memory && at == recipe.value; break;
      case Recovery::kOffset: same = is_value && location.Is(0, DW_OP_call_frame_cfa); break;
      case Recovery::kRegister: same = location.Is(0, DW_OP_regx) && location.ops[0].number == recipe.number; break;
      case Recovery::kAtExpression: same = !is_value && location.Is(0, DW_OP_call_frame_cfa); break;
      case Recovery::kExpression: same = is_value && location.Is(0, DW_OP_call_frame_cfa); break;
    }
    if (!same) return "register " + std::to_string(i);
  }
  return "";
}

}  // namespace perfkit::testing
