// The interpreter of CFA instructions against libdw's, with random programs of every instruction, and at its limits.
#include "src/unwind/dwarf/cfi/cfi_program.h"

#include <catch2/catch.hpp>
#include <random>

#include "src/unwind/dwarf/cfi/cfi.h"
#include "src/unwind/dwarf/cfi/rule_from_row.h"
#include "tests/unwind/dwarf/cfi/crafted.h"
#include "tests/unwind/dwarf/cfi/oracle.h"

namespace perfkit {
namespace {

using testing::Ops;
using testing::Raw;
using testing::Sleb;
using testing::Uleb;
using unwind::Rule;
using unwind::RuleKind;

constexpr uint64_t kBegin = 0x1000, kLength = 0x100;

// Writes valid programs: each restore has a remember, and only a CFA in a register gets an offset.
class ProgramWriter {
 public:
  explicit ProgramWriter(uint32_t seed, bool arm)
      : random_(seed), registers_(arm ? 32 : 17), fp_(arm ? 29 : 6), sp_(arm ? 31 : 7) {}

  std::string Write(unsigned instructions) {
    std::string program;
    for (unsigned i = 0; i < instructions; ++i) {
      switch (Below(8)) {
        case 0: program += Cfa(); break;
        case 1: program += State(); break;
        case 2:
        case 3: program += Location(); break;
        default: program += Register();
      }
    }
    return program;
  }

 private:
  int Below(uint32_t bound) { return static_cast<int>(random_() % bound); }
  // Mostly those that rules are made of.
  int AnyRegister() { return Below(3) != 0 ? Below(registers_) : Below(2) == 0 ? fp_ : registers_ == 17 ? 16 : 30; }
  std::string Number() { return Uleb(static_cast<uint64_t>(Below(Below(4) == 0 ? 40'000 : 20))); }
  std::string SignedNumber() { return Sleb(Below(64) - 32); }

  std::string Location() {
    const int delta = Below(6);
    switch (Below(6)) {
      case 0: return Ops({DW_CFA_advance_loc1, delta});
      case 1: return Ops({DW_CFA_advance_loc2, delta, 0});
      case 2: return Ops({DW_CFA_advance_loc4, delta, 0, 0, 0});
      case 3: return Ops({DW_CFA_MIPS_advance_loc8, delta, 0, 0, 0, 0, 0, 0, 0});
      default: return Ops({DW_CFA_advance_loc | delta});
    }
  }

  std::string Cfa() {
    const int reg = Below(3) == 0 ? Below(registers_) : Below(2) == 0 ? fp_ : sp_;
    const int how = Below(sum_ ? 6 : 3);
    sum_ = how != 0;
    switch (how) {
      case 0: return Ops({DW_CFA_def_cfa_expression, 3, DW_OP_breg3, 8, DW_OP_deref});
      case 1: return Ops({DW_CFA_def_cfa, reg}) + Number();
      case 2: return Ops({DW_CFA_def_cfa_sf, reg}) + SignedNumber();
      case 3: return Ops({DW_CFA_def_cfa_register, reg});
      case 4: return Ops({DW_CFA_def_cfa_offset}) + Number();
      default: return Ops({DW_CFA_def_cfa_offset_sf}) + SignedNumber();
    }
  }

  std::string State() {
    if (!remembered_.empty() && Below(2) == 0) {
      sum_ = remembered_.back();
      remembered_.pop_back();
      return Ops({DW_CFA_restore_state});
    }
    if (remembered_.size() > 8) return Ops({DW_CFA_GNU_args_size}) + Number();
    remembered_.push_back(sum_);
    return Ops({DW_CFA_remember_state});
  }

  std::string Register() {
    const int reg = AnyRegister();
    switch (Below(12)) {
      case 0: return Ops({DW_CFA_offset_extended, reg}) + Number();
      case 1: return Ops({DW_CFA_offset_extended_sf, reg}) + SignedNumber();
      case 2: return Ops({DW_CFA_restore | reg});
      case 3: return Ops({DW_CFA_restore_extended, reg});
      case 4: return Ops({DW_CFA_undefined, reg});
      case 5: return Ops({DW_CFA_same_value, reg});
      case 6: return Ops({DW_CFA_register, reg, AnyRegister()});
      case 7: return Ops({DW_CFA_val_offset, reg}) + Number();
      case 8: return Ops({DW_CFA_val_offset_sf, reg}) + SignedNumber();
      case 9: return Ops({DW_CFA_expression, reg, 2, DW_OP_breg7, 8});
      case 10: return Ops({DW_CFA_val_expression, reg, 3, DW_OP_breg7, 8, DW_OP_deref});
      default: return Ops({DW_CFA_offset | reg}) + Number();
    }
  }

  std::mt19937 random_;
  uint32_t registers_;
  int fp_, sp_;
  bool sum_ = true;  // the CFA is a register and an offset
  std::vector<bool> remembered_;
};

std::string ProgramModule(const std::string& program, bool arm) {
  testing::Records records(false);
  records.Cie(arm ? testing::kArmStart : testing::kX86Start, arm ? 30 : 16);
  records.Fde(kBegin, kLength, program);
  testing::ElfBuilder builder;
  builder.header.e_machine = arm ? EM_AARCH64 : EM_X86_64;
  builder.header.e_version = EV_CURRENT;
  builder.AddSection(".debug_frame", {.sh_type = SHT_PROGBITS, .sh_addralign = 1}, records.bytes());
  return builder.Build();
}

void CheckRandomPrograms(uint32_t programs) {
  uint64_t pcs = 0, slow = 0;
  for (uint32_t seed = 0; seed < programs; ++seed) {
    const bool arm = seed % 2 == 1;
    const std::string program = ProgramWriter(seed, arm).Write(5 + seed % 60), file = ProgramModule(program, arm);
    const testing::Oracle oracle(file, true);
    REQUIRE(oracle.ok());
    unwind::Cfi cfi(*elf::Image::Parse(testing::BytesOf(file)));
    for (uint64_t pc = kBegin; pc < kBegin + kLength; ++pc) {
      const testing::Oracle::Row row = oracle.At(pc);
      REQUIRE(row != nullptr);
      unwind::CfiRow full;
      const std::string different = cfi.Full(pc, full) ? oracle.Differs(row.get(), full) : "no row";
      const Rule rule = cfi.At(pc), expected = oracle.RuleFromRow(row.get());
      INFO("seed " << seed << " pc " << pc << " kind " << int(rule.kind) << " of " << int(expected.kind));
      if (different != "" || rule != expected) FAIL(different);
      slow += rule.kind == RuleKind::kSlow;
      ++pcs;
    }
  }
  CHECK(pcs == programs * kLength);
  CHECK(slow < pcs * 95 / 100);  // else rules would not be compared
}

TEST_CASE("random programs mean what libdw makes of them, at every pc") { CheckRandomPrograms(300); }
TEST_CASE("many random programs mean what libdw makes of them, at every pc", "[.heavy]") {
  CheckRandomPrograms(10'000);
}

// The rows of a program as their places, "!" when it is damaged.
std::string RulesOf(const std::string& program, const std::string& start = testing::kX86Start) {
  testing::Records records;
  records.Cie(start);
  records.Fde(kBegin, kLength, program);
  const std::string bytes = records.bytes();
  const unwind::CfiSection section{.bytes = testing::BytesOf(bytes), .address = 0x4000, .is_eh = true, .header = {}};
  unwind::CfiProgram machine(section);
  unwind::Cie cie;
  cie.program = testing::BytesOf(start);
  cie.initial.section = section.bytes;
  if (!machine.RunInitial(cie)) return "no CIE";
  std::string places;
  const bool good = machine.Run({kBegin, kBegin + kLength, testing::BytesOf(program), &cie},
                                [&](uint64_t begin, uint64_t end, const unwind::CfiRow&) {
                                  places += std::to_string(begin - kBegin) + "-" + std::to_string(end - kBegin) + " ";
                                  return true;
                                });
  return places + (good ? "" : "!");
}

TEST_CASE("rows have no gaps, are not empty, and end with the function") {
  CHECK(RulesOf("") == "0-256 ");
  CHECK(RulesOf(Ops({DW_CFA_advance_loc | 0, DW_CFA_advance_loc | 4, DW_CFA_nop})) == "0-4 4-256 ");
  CHECK(RulesOf(Ops({DW_CFA_advance_loc2, 0xff, 0, DW_CFA_advance_loc | 1, 0x3f})) == "0-255 255-256 ");
  CHECK(RulesOf(Ops({DW_CFA_advance_loc2, 0xff, 0xff})) == "0-256 ");
  CHECK(RulesOf(Ops({DW_CFA_set_loc}) + Raw(kBegin + 16)) == "0-16 16-256 ");
}

TEST_CASE("programs that are cut off, go back, or are not known stop where they are damaged") {
  CHECK(RulesOf(Ops({DW_CFA_advance_loc | 4, DW_CFA_advance_loc2, 1})) == "0-4 !");
  CHECK(RulesOf(Ops({DW_CFA_advance_loc | 4, DW_CFA_set_loc}) + Raw(kBegin)) == "0-4 !");
  CHECK(RulesOf(Ops({DW_CFA_advance_loc | 4, DW_CFA_set_loc, 1, 2})) == "0-4 !");
  CHECK(RulesOf(Ops({DW_CFA_MIPS_advance_loc8}) + Raw(~uint64_t{0})) == "!");
  CHECK(RulesOf(Ops({DW_CFA_advance_loc | 4, 0x3e})) == "0-4 !");
  CHECK(RulesOf(Ops({DW_CFA_advance_loc | 4, DW_CFA_restore_state})) == "0-4 !");
  CHECK(RulesOf(Ops({DW_CFA_def_cfa_expression, 5, 0})) == "!");
  CHECK(RulesOf(Ops({DW_CFA_expression, 6, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})) == "!");
  CHECK(RulesOf(Ops({DW_CFA_def_cfa_expression, 0, DW_CFA_def_cfa_offset, 8})) == "!");
  CHECK(RulesOf(Ops({DW_CFA_def_cfa_expression, 0, DW_CFA_def_cfa_register, 8})) == "!");
  CHECK(RulesOf(Ops({DW_CFA_def_cfa}) + Uleb(uint64_t{1} << 40) + Uleb(8)) == "!");
  CHECK(RulesOf(std::string(32, DW_CFA_remember_state)) == "0-256 ");
  CHECK(RulesOf(std::string(33, DW_CFA_remember_state)) == "!");
}

TEST_CASE("a CIE's program has no places, nothing to restore, and an end") {
  CHECK(RulesOf("", Ops({DW_CFA_advance_loc | 1})) == "no CIE");
  CHECK(RulesOf("", Ops({DW_CFA_restore | 6})) == "no CIE");
  CHECK(RulesOf("", std::string(1024, DW_CFA_nop)) == "0-256 ");
  CHECK(RulesOf("", std::string(1025, DW_CFA_nop)) == "no CIE");
}

}  // namespace
}  // namespace perfkit
