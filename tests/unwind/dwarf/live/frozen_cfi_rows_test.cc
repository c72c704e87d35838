// Frozen rows equal the records' rows: slow ones, and all of them if a CFA needs registers that callees save.
#include "src/unwind/dwarf/live/frozen_cfi_rows.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>

#include "src/unwind/machine.h"
#include "tests/unwind/dwarf/cfi/crafted.h"
#include "tests/unwind/dwarf/cfi/oracle.h"

namespace perfkit {
namespace {

using testing::Ops;
using testing::Uleb;
using unwind::Cfi;
using unwind::CfiRow;
using unwind::FrozenCfiRows;
using unwind::FrozenTable;
using unwind::Recovery;
using unwind::Rule;
using unwind::RuleKind;
using unwind::X86_64;

bool IsSame(const CfiRow& a, const unwind::Recipe& x, const CfiRow& b, const unwind::Recipe& y) {
  const base::Bytes first = a.Expression(x), second = b.Expression(y);
  const bool expression = x.how == Recovery::kExpression || x.how == Recovery::kAtExpression;
  return x.how == y.how && x.number == y.number &&
         (expression ? std::equal(first.begin(), first.end(), second.begin(), second.end()) : x.value == y.value);
}

bool IsSame(const CfiRow& a, const CfiRow& b) {
  bool same = IsSame(a, a.cfa, b, b.cfa) && a.return_register == b.return_register && a.signal_frame == b.signal_frame;
  for (uint32_t i = 0; i < CfiRow::kRegisters; ++i) same &= IsSame(a, a.registers[i], b, b.registers[i]);
  return same;
}

struct FrozenModule {
  explicit FrozenModule(Cfi& cfi) : rows(cfi, unwind::kX86Registers, X86_64::kPreserved, rules) {}

  bool At(uint64_t address, CfiRow& row) const { return rows.At(address, rules, row); }

  FrozenTable rules;  // Filled by the next one.
  FrozenCfiRows rows;
};

struct Agreement {
  size_t rows = 0, kept = 0, slow = 0, slow_kept = 0, different = 0;
};

// At each change of rule, and at the last byte before it.
Agreement Compare(Cfi& cfi, const FrozenModule& frozen) {
  std::vector<uint64_t> places;
  for (const auto& [begin, rule] : cfi.Changes()) {
    places.push_back(begin - 1);
    places.push_back(begin);
  }
  Agreement found;
  for (const uint64_t number : places) {
    CfiRow expected, row;
    row.registers[1].value = 1;  // what was there before goes
    if (!cfi.Full(number, expected)) continue;
    const bool slow = cfi.At(number).kind == RuleKind::kSlow, kept = frozen.At(number, row);
    ++found.rows;
    found.kept += kept;
    found.slow += slow;
    found.slow_kept += slow && kept;
    found.different += kept && !IsSame(expected, row);
  }
  return found;
}

TEST_CASE("an empty table has no rows") {
  CfiRow row;
  CHECK_FALSE(FrozenCfiRows().At(0, FrozenTable(), row));
  CHECK_FALSE(FrozenCfiRows().At(~uint64_t{0}, FrozenTable(), row));
}

// A function with a CFA in `number` for 4 bytes.
std::string ModuleWithCfaIn(int number) {
  testing::Records records;
  records.Cie();
  const std::string push = Ops({DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16, DW_CFA_offset | 3, 2});
  records.Fde(0x1000, 0x20, push);
  records.Fde(
      0x1020, 0x20,
      push + Ops({DW_CFA_advance_loc | 4, DW_CFA_def_cfa, number, 16, DW_CFA_advance_loc | 4, DW_CFA_def_cfa, 7, 16}));
  return testing::Module(records);
}

TEST_CASE("only slow rows are kept if no others are needed") {
  const std::string file = ModuleWithCfaIn(10);
  Cfi cfi(*elf::Image::Parse(testing::BytesOf(file)));
  const FrozenModule frozen(cfi);
  const Agreement found = Compare(cfi, frozen);
  CHECK(found.slow > 0);
  CHECK(found.kept == found.slow);
  CHECK(found.different == 0);
  CfiRow row;
  REQUIRE(frozen.At(0x1025, row));
  CHECK((row.cfa.number == 10 && row.cfa.value == 16));
  CHECK_FALSE(frozen.At(0x1010, row));
}

TEST_CASE("all rows are kept where a CFA is in what callees preserve") {
  const std::string file = ModuleWithCfaIn(3);
  Cfi cfi(*elf::Image::Parse(testing::BytesOf(file)));
  const FrozenModule frozen(cfi);
  const Agreement found = Compare(cfi, frozen);
  CHECK(found.kept == found.rows);
  CHECK(found.different == 0);
  CfiRow row;
  REQUIRE(frozen.At(0x1010, row));
  CHECK((row.registers[3].how == Recovery::kAtOffset && row.registers[3].value == -16));
  CHECK_FALSE(frozen.At(0xfff, row));
}

TEST_CASE("a row of .debug_frame is kept where .eh_frame has no CFA") {
  testing::Records eh, debug(false);
  eh.Cie("");
  eh.Fde(0x1000, 0x20);
  eh.Cie();
  eh.Fde(0x2000, 0x20, Ops({DW_CFA_def_cfa, 3, 16}));  // All rows are needed.
  debug.Cie();
  debug.Fde(0x1000, 0x20, Ops({DW_CFA_def_cfa, 10, 16}));
  testing::ElfBuilder builder;
  builder.AddSection(".debug_frame", {.sh_type = SHT_PROGBITS}, debug.bytes());
  const std::string module = testing::Module(eh), debug_file = builder.Build();
  Cfi cfi(*elf::Image::Parse(testing::BytesOf(module)), *elf::Image::Parse(testing::BytesOf(debug_file)));
  const FrozenModule frozen(cfi);
  CfiRow row;
  REQUIRE(frozen.At(0x1010, row));
  CHECK((row.cfa.number == 10 && row.cfa.value == 16));
  CHECK(Compare(cfi, frozen).different == 0);
}

TEST_CASE("expressions are copied: the module may go") {
  testing::Records records;
  records.Cie();
  records.Fde(0x1000, 0x20, Ops({DW_CFA_def_cfa_expression, 3, DW_OP_breg6, 0x70, DW_OP_deref}));
  std::string file = testing::Module(records);
  std::optional<Cfi> cfi(*elf::Image::Parse(testing::BytesOf(file)));
  const FrozenModule frozen(*cfi);
  cfi.reset();
  std::fill(file.begin(), file.end(), '\0');
  CfiRow row;
  REQUIRE(frozen.At(0x1010, row));
  const base::Bytes expression = row.Expression(row.cfa);
  REQUIRE(expression.size() == 3);
  CHECK(expression[0] == std::byte{DW_OP_breg6});
  CHECK(expression[2] == std::byte{DW_OP_deref});
}

TEST_CASE("rows of the libraries that every program has are the records'") {
  for (const char* const name : {"ld-linux-x86-64.so.2", "libc.so.6", "libgcc_s.so.1", "libcrypto.so.3"}) {
    std::ifstream stream(testing::PathOfLibrary(name), std::ios::binary);
    const std::string file(std::istreambuf_iterator<char>(stream), {});
    if (file.empty()) continue;  // libcrypto is not everywhere
    Cfi cfi(*elf::Image::Parse(testing::BytesOf(file)));
    const FrozenModule frozen(cfi);
    const Agreement found = Compare(cfi, frozen);
    INFO(name << ": " << found.rows << " rows, " << found.slow << " slow, " << frozen.rows.heap_bytes() << " bytes");
    CHECK(found.rows > 1000);
    CHECK(found.slow_kept == found.slow);
    CHECK(found.different == 0);
    if (std::string_view(name).starts_with("ld-")) CHECK(found.kept == found.rows);
  }
}

}  // namespace
}  // namespace perfkit
