// Rows of every form that a rule has, on both machines, and what is almost one.
#include "src/unwind/dwarf/cfi/rule_from_row.h"

#include <catch2/catch.hpp>

#include "src/unwind/dwarf/cfi/cfi.h"
#include "tests/unwind/dwarf/cfi/crafted.h"

namespace perfkit {
namespace {

using testing::Ops;
using unwind::Rule;
using unwind::RuleKind;

Rule RuleFor(const std::string& program, bool arm = false, std::string_view augmentation = "zR", char column = 0) {
  testing::Records records;
  records.Cie(arm ? testing::kArmStart : testing::kX86Start, column != 0 ? column : arm ? 30 : 16, augmentation);
  records.Fde(0x1000, 0x10, program);
  testing::Shape shape;
  shape.machine = arm ? EM_AARCH64 : EM_X86_64;
  const std::string file = testing::Module(records, shape);
  unwind::Cfi cfi(*elf::Image::Parse(testing::BytesOf(file)));
  return cfi.At(0x1000);
}
Rule RuleFor(std::initializer_list<int> program, bool arm = false) { return RuleFor(Ops(program), arm); }
RuleKind KindFor(std::initializer_list<int> program, bool arm = false) { return RuleFor(program, arm).kind; }

TEST_CASE("x86-64: sums of rsp and rbp, with rbp saved or not") {
  CHECK(RuleFor({DW_CFA_def_cfa_offset, 48}) == Rule{.offset = 48, .kind = RuleKind::kSp});
  CHECK(RuleFor({DW_CFA_def_cfa, 6, 16, DW_CFA_offset | 6, 2}) ==
        Rule{.offset = 16, .slot = -2, .kind = RuleKind::kFp, .flags = Rule::kRestoresFp});
  CHECK(RuleFor({DW_CFA_def_cfa_offset, 16, DW_CFA_def_cfa_register, 6}) == Rule{.offset = 16, .kind = RuleKind::kFp});
  CHECK(RuleFor({DW_CFA_def_cfa_sf, 7, 0x7c}) == Rule{.offset = 32, .kind = RuleKind::kSp});
  CHECK(RuleFor({DW_CFA_def_cfa_offset_sf, 0x7b}) == Rule{.offset = 40, .kind = RuleKind::kSp});
  CHECK(RuleFor({DW_CFA_same_value, 6}) == Rule{.offset = 8, .kind = RuleKind::kSp});
  CHECK(RuleFor({DW_CFA_val_offset, 7, 0}) == Rule{.offset = 8, .kind = RuleKind::kSp});
}

TEST_CASE("x86-64: what is no such sum is slow") {
  CHECK(KindFor({DW_CFA_def_cfa, 10, 0}) == RuleKind::kSlow);
  // The jump to a landing pad, only if rax and rdx were saved.
  CHECK(KindFor({DW_CFA_def_cfa, 2, 8}) == RuleKind::kSlow);
  CHECK(KindFor({DW_CFA_def_cfa, 2, 8, DW_CFA_offset | 0, 9}) == RuleKind::kSlow);
  CHECK(KindFor({DW_CFA_def_cfa, 2, 8, DW_CFA_offset | 0, 9, DW_CFA_offset | 1, 8}) == RuleKind::kInstalls);
  CHECK(KindFor({DW_CFA_def_cfa, 2, 16, DW_CFA_offset | 0, 9, DW_CFA_offset | 1, 8}) == RuleKind::kSlow);
  CHECK(KindFor({DW_CFA_def_cfa_expression, 2, DW_OP_breg7, 8}) == RuleKind::kSlow);
  CHECK(KindFor({DW_CFA_offset | 16, 2}) == RuleKind::kSlow);
  CHECK(KindFor({DW_CFA_register, 16, 11}) == RuleKind::kSlow);
  CHECK(KindFor({DW_CFA_register, 6, 11}) == RuleKind::kSlow);
  CHECK(KindFor({DW_CFA_undefined, 6}) == RuleKind::kSlow);
  CHECK(KindFor({DW_CFA_val_offset, 7, 1}) == RuleKind::kSlow);
  CHECK(KindFor({DW_CFA_offset | 7, 3}) == RuleKind::kSlow);
  CHECK(KindFor({DW_CFA_expression, 6, 2, DW_OP_breg7, 0}) == RuleKind::kSlow);
  CHECK(RuleFor(Ops({DW_CFA_def_cfa_offset}) + testing::Uleb(uint64_t{1} << 31)).kind == RuleKind::kSlow);
  CHECK(RuleFor(Ops({DW_CFA_offset | 6}) + testing::Uleb(32769)).kind == RuleKind::kSlow);
  CHECK(RuleFor(Ops({DW_CFA_offset | 6}) + testing::Uleb(32768)).slot == -32768);
  CHECK(RuleFor("", false, "zR", 3).kind == RuleKind::kSlow);
}

TEST_CASE("an undefined return address is the root") {
  CHECK(RuleFor({DW_CFA_undefined, 16}) == Rule{.kind = RuleKind::kRoot});
  CHECK(RuleFor({DW_CFA_undefined, 30}, true) == Rule{.kind = RuleKind::kRoot});
}

TEST_CASE("x86-64: both expressions of lazy PLTs are known, and no other") {
  const auto plt = [](int push, int shift = DW_OP_lit3) {
    return RuleFor({DW_CFA_def_cfa_expression, 11, DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and,
                    DW_OP_lit0 + push, DW_OP_ge, shift, DW_OP_shl, DW_OP_plus});
  };
  CHECK(plt(11) == Rule{.offset = 11, .kind = RuleKind::kPlt});
  CHECK(plt(10) == Rule{.offset = 10, .kind = RuleKind::kPlt});
  CHECK(plt(9).kind == RuleKind::kSlow);
  CHECK(plt(11, DW_OP_lit4).kind == RuleKind::kSlow);
}

// As glibc's __restore_rt has it: each register an expression of rsp and its place in the ucontext.
std::string RestoreRt(int rip_low = 0xa8) {
  return Ops({DW_CFA_def_cfa_expression, 4,  DW_OP_breg7, 0xa0,        1,       DW_OP_deref,  //
              DW_CFA_expression,         6,  3,           DW_OP_breg7, 0xf8,    0,            //
              DW_CFA_expression,         7,  3,           DW_OP_breg7, 0xa0,    1,            //
              DW_CFA_expression,         16, 3,           DW_OP_breg7, rip_low, 1});
}

TEST_CASE("frames of signals are known by what they say, and flagged whatever they say") {
  CHECK(RuleFor(RestoreRt(), false, "zRS") == Rule{.kind = RuleKind::kSignal, .flags = Rule::kSignalFrame});
  CHECK(RuleFor(RestoreRt(0xb0), false, "zRS") == Rule{.kind = RuleKind::kSlow, .flags = Rule::kSignalFrame});
  CHECK(RuleFor(RestoreRt()).kind == RuleKind::kSlow);
  CHECK(RuleFor("", false, "zRS") == Rule{.offset = 8, .kind = RuleKind::kSp, .flags = Rule::kSignalFrame});
  // The kernel's own for aarch64: a siginfo of 128 bytes lies before the ucontext.
  const std::string record = Ops({DW_CFA_def_cfa, 29, 0, DW_CFA_offset | 29, 0, DW_CFA_offset_extended_sf, 30, 0x7f});
  CHECK(RuleFor(record, true, "zRS") == Rule{.offset = 128, .kind = RuleKind::kSignal, .flags = Rule::kSignalFrame});
  CHECK(RuleFor(record, true).kind == RuleKind::kFp);
}

TEST_CASE("aarch64: the return address is in lr, beside fp, or alone") {
  CHECK(RuleFor({DW_CFA_nop}, true) == Rule{.kind = RuleKind::kSp, .flags = Rule::kReturnInLr});
  CHECK(RuleFor({DW_CFA_def_cfa_offset, 48, DW_CFA_offset | 29, 6, DW_CFA_offset | 30, 5}, true) ==
        Rule{.offset = 48, .slot = -6, .kind = RuleKind::kSp, .flags = Rule::kRestoresFp});
  CHECK(RuleFor({DW_CFA_def_cfa, 29, 32, DW_CFA_offset | 29, 4, DW_CFA_offset | 30, 3}, true) ==
        Rule{.offset = 32, .slot = -4, .kind = RuleKind::kFp, .flags = Rule::kRestoresFp});
  CHECK(RuleFor({DW_CFA_def_cfa_offset, 16, DW_CFA_offset | 30, 2}, true) ==
        Rule{.offset = 16, .slot = -2, .kind = RuleKind::kSp, .flags = Rule::kReturnAtSlot});
  CHECK(RuleFor({DW_CFA_def_cfa_offset, 16, DW_CFA_offset | 29, 2}, true) ==
        Rule{.offset = 16, .slot = -2, .kind = RuleKind::kSp, .flags = Rule::kRestoresFp | Rule::kReturnInLr});
  CHECK(KindFor({DW_CFA_offset | 29, 4, DW_CFA_offset | 30, 2}, true) == RuleKind::kSlow);
  CHECK(KindFor({DW_CFA_register, 30, 9}, true) == RuleKind::kSlow);
}

TEST_CASE("aarch64: signing the return address changes no rule, nor do vector registers") {
  const Rule signed_rule = RuleFor({0x2d, DW_CFA_def_cfa_offset, 16, DW_CFA_offset_extended, 72, 1}, true);
  CHECK(signed_rule == Rule{.offset = 16, .kind = RuleKind::kSp, .flags = Rule::kReturnInLr});
}

TEST_CASE("a row without a CFA is no information") {
  testing::Records records;
  records.Cie(Ops({DW_CFA_offset | 16, 1}));
  records.Fde(0x1000, 0x10);
  const std::string file = testing::Module(records);
  unwind::Cfi cfi(*elf::Image::Parse(testing::BytesOf(file)));
  unwind::CfiRow row;
  CHECK(cfi.At(0x1000).kind == RuleKind::kNone);
  CHECK_FALSE(cfi.Full(0x1000, row));
}

}  // namespace
}  // namespace perfkit
