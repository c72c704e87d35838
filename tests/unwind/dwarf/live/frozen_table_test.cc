// Frozen tables return the records' rules, take little memory, and keep their limits.
#include "src/unwind/dwarf/live/frozen_table.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>

#include "tests/unwind/dwarf/cfi/crafted.h"
#include "tests/unwind/dwarf/cfi/oracle.h"

namespace perfkit {
namespace {

using testing::Ops;
using testing::Uleb;
using unwind::Cfi;
using unwind::FrozenTable;
using unwind::Rule;
using unwind::RuleKind;

// Of a module without .eh_frame_hdr, whose code may be anywhere.
struct Both {
  explicit Both(const testing::Records& records)
      : file(testing::Module(records, {.header = false})),
        cfi(*elf::Image::Parse(testing::BytesOf(file))),
        frozen(cfi) {}

  std::string file;
  Cfi cfi;
  FrozenTable frozen;
};

TEST_CASE("an empty table knows nothing") {
  CHECK(FrozenTable().At(0).kind == RuleKind::kNone);
  CHECK(FrozenTable().At(~uint64_t{0}).kind == RuleKind::kNone);
  CHECK(FrozenTable().rows() == 0);
}

// The first pc of each row and the last of the one before.
void CheckEdges(Both& both) {
  uint64_t wrong = 0, edges = 0;
  for (const auto& [begin, rule] : both.cfi.Changes()) {
    for (const uint64_t at : {begin - 1, begin}) wrong += both.frozen.At(at) != both.cfi.At(at);
    ++edges;
  }
  CHECK(wrong == 0);
  CHECK(edges >= both.frozen.rows());
}

TEST_CASE("changes of rule may be near, far, small and large") {
  testing::Records records;
  records.Cie();
  std::string program;
  uint64_t length = 1;
  for (int i = 0; i < 3000; ++i) {
    const uint32_t delta = i % 7 == 0 ? 70'000 : i % 5 == 0 ? 300 : i % 11 + 1;
    program += Ops({DW_CFA_advance_loc4}) + testing::Raw(delta) + Ops({DW_CFA_def_cfa_offset});
    program += Uleb(i % 13 == 0 ? 1'000'000u * static_cast<unsigned>(i) : static_cast<unsigned>(i % 300) * 8);
    length += delta;
  }
  records.Fde(0x1000, length, program);
  Both both(records);
  CheckEdges(both);
  CHECK(both.frozen.At(0xfff).kind == RuleKind::kNone);
  CHECK(both.frozen.At(0x1000 + length + 15).kind == RuleKind::kNone);
  CHECK(both.frozen.At(~uint64_t{0}).kind == RuleKind::kNone);
}

TEST_CASE("rules are found where nearly all rows are in one place, and the next ones far away") {
  for (const bool dense_first : {false, true}) {
    testing::Records records;
    records.Cie();
    std::string program;
    for (unsigned i = 0; i < 5000; ++i) {
      program += Ops({DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset}) + Uleb(16 + i % 3000 * 8);
    }
    constexpr uint64_t kFar = uint64_t{3} << 30;
    for (uint64_t i = 0; i < 40; ++i) records.Fde(0x1000 + (dense_first ? kFar : 0) + i * 4096, 16);
    records.Fde(0x1000'0000 + (dense_first ? 0 : kFar), 5001, program);
    Both both(records);
    CheckEdges(both);
  }
}

TEST_CASE("rules are found where few rows are spread over nearly 4 GiB") {
  for (unsigned count = 1; count <= 80; ++count) {
    testing::Records records;
    records.Cie();
    const uint64_t step = count == 1 ? 0 : 0xfff0'0000 / (count - 1);
    for (uint64_t i = 0; i < count; ++i) records.Fde(0x1000 + i * step, 16);
    Both both(records);
    CheckEdges(both);
  }
}

constexpr uint64_t kRules = 66'000;  // More than a table has numbers for.

// Returns a program of kRules rules that need a number: with each of them, fp is saved elsewhere. `steps`: after each,
// only the CFA changes.
std::string ManyRules(bool steps) {
  std::string program;
  for (uint64_t i = 0; i < kRules; ++i) {
    program += Ops({DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset}) + Uleb(16 + i * 16);
    program += Ops({DW_CFA_offset | 6, i % 2 == 0 ? 2 : 3});
    if (steps) program += Ops({DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset}) + Uleb(16 + i * 16 + 8);
  }
  return program;
}

// Returns the number of pcs that are slow; all others have the rule that they should have.
uint64_t CountSlow(Both& both, uint64_t pcs) {
  uint64_t wrong = 0, slow = 0;
  for (uint64_t pc = 0x1000; pc < 0x1000 + pcs; ++pc) {
    const Rule rule = both.frozen.At(pc);
    rule == Rule{.kind = RuleKind::kSlow} ? ++slow : wrong += rule != both.cfi.At(pc);
  }
  CHECK(wrong == 0);
  return slow;
}

TEST_CASE("what has no number is slow, and what is too far away is unknown") {
  testing::Records records;
  records.Cie();
  records.Fde(0x1000, kRules + 1, ManyRules(false));
  records.Fde(0x1000 + (uint64_t{1} << 33), 16);
  Both both(records);
  const uint64_t slow = CountSlow(both, kRules);
  CHECK(slow > 0);
  CHECK(slow <= kRules - 65'534);
  CHECK(both.cfi.At(0x1000 + (uint64_t{1} << 33)).kind == RuleKind::kSp);
  CHECK(both.frozen.At(0x1000 + (uint64_t{1} << 33)).kind == RuleKind::kNone);
}

TEST_CASE("a step after a rule without a number has none, either") {
  testing::Records records;
  records.Cie();
  records.Fde(0x1000, 2 * kRules + 1, ManyRules(true));
  Both both(records);
  CHECK(CountSlow(both, 2 * kRules) > 0);
}

TEST_CASE("tables of the C and C++ libraries take at most 45 KiB a MiB of code") {
  for (const char* const name : {"libc.so.6", "libstdc++.so.6"}) {
    std::ifstream stream(testing::PathOfLibrary(name), std::ios::binary);
    const std::string file(std::istreambuf_iterator<char>(stream), {});
    Cfi cfi(*elf::Image::Parse(testing::BytesOf(file)));
    const FrozenTable frozen(cfi);
    uint64_t code = 0, last = 0;
    bool known = false;
    for (const auto& [begin, rule] : cfi.Changes()) {
      code += known ? begin - last : 0;
      last = begin;
      known = rule.kind != RuleKind::kNone;
    }
    const size_t bytes = sizeof(frozen) + frozen.heap_bytes();
    INFO(name << ": " << bytes << " bytes for " << code);
    CHECK(frozen.rows() > 10'000);
    CHECK(bytes * 1024 <= code * 45);
  }
}

}  // namespace
}  // namespace perfkit
