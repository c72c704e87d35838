// AppendUsualRules gives the changes that RuleFromRow gives for the rows, in the libraries at hand and for each
// instruction.
#include "src/unwind/dwarf/cfi/usual_program.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>

#include "src/unwind/dwarf/cfi/cfi.h"
#include "tests/unwind/dwarf/cfi/crafted.h"
#include "tests/unwind/dwarf/cfi/oracle.h"

namespace perfkit {
namespace {

using testing::Ops;
using unwind::Rule;
using unwind::RuleChange;
using unwind::RuleKind;

constexpr uint64_t kUsualBegin = 0x1000;

// An FDE of 0x40 bytes whose CIE is that of compilers.
class CraftedFunction {
 public:
  explicit CraftedFunction(std::string program, const std::string& start = testing::kX86Start,
                           const unwind::MachineRegisters& machine = unwind::kX86Registers)
      : machine_(machine), start_(start), program_(std::move(program)) {
    cie_.data_alignment = -8;
    cie_.program = testing::BytesOf(start_);
    cie_.initial.return_register = machine.return_address;
    REQUIRE(unwind::CfiProgram(section_).RunInitial(cie_));
  }

  unwind::Cie& cie() { return cie_; }

  // Returns what is appended to one change that was there before; nullopt for what is refused.
  std::optional<std::vector<RuleChange>> Usual() const {
    const RuleChange before{.begin = 1, .rule = {.offset = 2}};
    std::vector<RuleChange> changes = {before};
    const unwind::Fde fde{kUsualBegin, kUsualBegin + 0x40, testing::BytesOf(program_), &cie_};
    const bool usual = unwind::AppendUsualRules(fde, machine_, changes);
    REQUIRE(changes.front() == before);
    changes.erase(changes.begin());
    if (usual) return changes;
    CHECK(changes.empty());
    return std::nullopt;
  }

 private:
  unwind::MachineRegisters machine_;
  unwind::CfiSection section_;
  unwind::Cie cie_;
  std::string start_, program_;
};

Rule UsualSp(int32_t offset) { return {.offset = offset, .kind = RuleKind::kSp}; }
Rule UsualFp(RuleKind kind, int32_t offset) {
  return {.offset = offset, .slot = -2, .kind = kind, .flags = Rule::kRestoresFp};
}

TEST_CASE("a function that keeps a frame pointer is usual") {
  const CraftedFunction function(Ops({DW_CFA_advance_loc | 1,
                                      DW_CFA_def_cfa_offset,
                                      16,
                                      DW_CFA_offset | 6,
                                      2,  //
                                      DW_CFA_advance_loc | 3,
                                      DW_CFA_def_cfa_register,
                                      6,
                                      DW_CFA_offset | 3,
                                      3,
                                      DW_CFA_advance_loc1,
                                      0x10,
                                      DW_CFA_remember_state,  //
                                      DW_CFA_restore | 6,
                                      DW_CFA_def_cfa,
                                      7,
                                      8,  //
                                      DW_CFA_advance_loc | 1,
                                      DW_CFA_restore_state,
                                      DW_CFA_nop}));
  CHECK(function.Usual() == std::vector<RuleChange>{{kUsualBegin, UsualSp(8)},
                                                    {kUsualBegin + 1, UsualFp(RuleKind::kSp, 16)},
                                                    {kUsualBegin + 4, UsualFp(RuleKind::kFp, 16)},
                                                    {kUsualBegin + 0x14, UsualSp(8)},
                                                    {kUsualBegin + 0x15, UsualFp(RuleKind::kFp, 16)}});
}

TEST_CASE("a function of aarch64 that signs its return address is usual") {
  const CraftedFunction function(Ops({DW_CFA_advance_loc | 4, unwind::kNegateRaState,     //
                                      DW_CFA_advance_loc | 4, DW_CFA_def_cfa_offset, 32,  //
                                      DW_CFA_offset | 29, 4, DW_CFA_offset | 30, 3,       //
                                      DW_CFA_advance_loc | 8, DW_CFA_restore | 30, DW_CFA_restore | 29,
                                      DW_CFA_def_cfa_offset, 0, unwind::kNegateRaStateWithPc}),
                                 testing::kArmStart, unwind::kArmRegisters);
  const Rule leaf{.kind = RuleKind::kSp, .flags = Rule::kReturnInLr};
  const Rule framed{.offset = 32, .slot = -4, .kind = RuleKind::kSp, .flags = Rule::kRestoresFp};
  CHECK(function.Usual() ==
        std::vector<RuleChange>{{kUsualBegin, leaf}, {kUsualBegin + 8, framed}, {kUsualBegin + 16, leaf}});
}

TEST_CASE("rows that do not change the rule are no change, and rows beyond the function do not exist") {
  const CraftedFunction function(Ops({DW_CFA_advance_loc | 1, DW_CFA_offset | 3, 2, DW_CFA_advance_loc2, 0, 0,  //
                                      DW_CFA_advance_loc | 0x3f, DW_CFA_def_cfa_offset, 24, DW_CFA_advance_loc | 9}));
  CHECK(function.Usual() == std::vector<RuleChange>{{kUsualBegin, UsualSp(8)}});
  CHECK(CraftedFunction("").Usual() == std::vector<RuleChange>{{kUsualBegin, UsualSp(8)}});
}

TEST_CASE("what is rare or damaged is left to whole rows") {
  const std::string row = Ops({DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16, DW_CFA_advance_loc | 1});
  const std::string rare[] = {Ops({DW_CFA_def_cfa, 3, 16}),                         // a CFA in rbx
                              Ops({DW_CFA_def_cfa_register, 10}),                   // or in r10
                              Ops({DW_CFA_def_cfa_expression, 2, DW_OP_breg7, 8}),  //
                              Ops({DW_CFA_register, 6, 3}),
                              Ops({DW_CFA_undefined, 16}),                           //
                              Ops({DW_CFA_offset | 7, 2, DW_CFA_advance_loc | 1}),   // rsp in memory
                              Ops({DW_CFA_offset | 16, 2, DW_CFA_advance_loc | 1}),  // the return address elsewhere
                              Ops({DW_CFA_restore_state}),                           // nothing is remembered
                              Ops({DW_CFA_def_cfa_offset, 0x80}),
                              Ops({DW_CFA_offset | 3}),  // cut short
                              Ops({DW_CFA_advance_loc4, 1}),
                              Ops({DW_CFA_def_cfa_offset, 0x80, 0x80, 1}),
                              Ops({0x3f})};
  for (const std::string& program : rare) {
    CAPTURE(testing::BytesOf(program).size(), int{program.front()});
    CHECK_FALSE(CraftedFunction(row + program).Usual());
  }
  CraftedFunction signal(row);
  signal.cie().initial.signal_frame = true;
  CHECK_FALSE(signal.Usual());
  CraftedFunction other(row);
  other.cie().initial.return_register = 3;
  CHECK_FALSE(other.Usual());
  CHECK_FALSE(CraftedFunction(row, "").Usual());  // no CFA
}

TEST_CASE("the rules of libraries are those of their rows") {
  std::vector<std::string> paths = {"/usr/aarch64-linux-gnu/lib/libc.so.6", "/usr/aarch64-linux-gnu/lib/libgcc_s.so.1"};
  for (const char* const name : {"ld-linux-x86-64.so.2", "libc.so.6", "libstdc++.so.6", "libgcc_s.so.1"}) {
    paths.push_back(testing::PathOfLibrary(name));
  }
  for (const std::string& path : paths) {
    std::ifstream stream(path, std::ios::binary);
    const std::string file(std::istreambuf_iterator<char>(stream), {});
    if (file.empty()) continue;  // Not everywhere.
    const elf::Image image = *elf::Image::Parse(testing::BytesOf(file));
    const auto& machine = image.machine() == EM_AARCH64 ? unwind::kArmRegisters : unwind::kX86Registers;
    unwind::Cfi cfi(image);
    const std::vector<RuleChange> rules = cfi.Changes();
    const auto of_rows = cfi.ChangesAs([&](const unwind::CfiRow& row) { return RuleFromRow(row, machine); });
    INFO(path);
    CHECK(rules.size() > 100);
    CHECK(rules == of_rows);
  }
}

}  // namespace
}  // namespace perfkit
