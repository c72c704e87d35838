// Feeds the fuzz targets of DWARF crafted modules, a real one, and thousands of mutations: the same ones in every run.
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>

#include "tests/fuzz/dwarf/cfi_fuzz.cc"
#include "tests/fuzz/dwarf/expression_fuzz.cc"
#include "tests/fuzz/replay.h"
#include "tests/support/skip.h"
#include "tests/unwind/dwarf/cfi/crafted.h"

namespace perfkit {
namespace {

using testing::Ops;
using testing::Replay;

// A bit of everything that programs of call frame information have.
testing::Records SomeRecords(bool is_eh, uint8_t encoding) {
  testing::Records records(is_eh);
  records.Cie(testing::kX86Start, 16, "zR", encoding);
  records.Fde(0x1000, 0x40,
              Ops({DW_CFA_advance_loc | 1,
                   DW_CFA_def_cfa_offset,
                   16,
                   DW_CFA_offset | 6,
                   2,
                   DW_CFA_advance_loc1,
                   3,
                   DW_CFA_def_cfa_register,
                   6,
                   DW_CFA_remember_state,
                   DW_CFA_advance_loc2,
                   8,
                   0,
                   DW_CFA_def_cfa,
                   7,
                   8,
                   DW_CFA_restore | 6,
                   DW_CFA_advance_loc4,
                   1,
                   0,
                   0,
                   0,
                   DW_CFA_restore_state,
                   DW_CFA_GNU_args_size,
                   8}));
  records.Fde(0x1040, 0x10,
              Ops({DW_CFA_def_cfa_expression, 11, DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and, DW_OP_lit11,
                   DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus}));
  records.Fde(0x1050, 0x20,
              testing::kEveryRecipe + Ops({DW_CFA_undefined, 16, DW_CFA_advance_loc | 1, DW_CFA_restore_extended, 16}));
  return records;
}

testing::Seeds Modules() {
  testing::Shape bare, arm;
  bare.header = bare.sections = false;
  arm.machine = EM_AARCH64;
  const testing::Records relative = SomeRecords(true, DW_EH_PE_pcrel | DW_EH_PE_sdata4);
  testing::ElfBuilder debug;
  debug.AddSection(".debug_frame", {.sh_type = SHT_PROGBITS}, SomeRecords(false, 0).bytes());
  testing::Shape no_header;
  no_header.header = false;
  return {testing::Module(relative), testing::Module(SomeRecords(true, 0), arm), testing::Module(relative, no_header),
          testing::Module(relative, bare), debug.Build()};
}

TEST_CASE("modules with call frame information, fuzzed", "[fuzz]") { Replay(FuzzCfi, Modules(), 20'000); }

TEST_CASE("modules with call frame information, every 4 bytes overwritten", "[fuzz]") {
  for (const std::string& module : Modules()) {
    for (const uint32_t value : {0u, ~0u, 0x80000000u, 0x100u}) {
      for (size_t at = 16; at + sizeof(value) <= module.size(); ++at) {
        std::string changed = module;
        std::memcpy(changed.data() + at, &value, sizeof(value));
        CHECK(FuzzCfi(reinterpret_cast<const uint8_t*>(changed.data()), changed.size()) == 0);
      }
    }
  }
}

// The bytes of .eh_frame_hdr and .eh_frame.
std::pair<size_t, size_t> RecordsOf(const elf::Image& image) {
  const auto first = image.FindSection(".eh_frame_hdr"), last = image.FindSection(".eh_frame");
  if (!first || !last) return {0, 0};
  return {std::min(first->offset, last->offset),
          std::max(first->offset + first->size_bytes, last->offset + last->size_bytes)};
}

TEST_CASE("10,000 mutations of a real program's call frame information", "[fuzz]") {
  std::ifstream stream("/bin/true", std::ios::binary);
  const std::string program(std::istreambuf_iterator<char>(stream), {});
  const auto image = elf::Image::Parse(testing::BytesOf(program));
  if (!image.ok()) SKIP_TEST("/bin/true is no program of 64 bits");
  const auto [begin, end] = RecordsOf(*image);
  REQUIRE(end > begin + 100);
  REQUIRE(end <= program.size());
  std::mt19937 random(6);
  for (int round = 0; round < 10'000; ++round) {
    std::string changed = program;
    for (unsigned changes = 1 + random() % 8; changes > 0; --changes) {
      const size_t at = begin + random() % (end - begin);
      changed[at] =
          static_cast<char>(random() % 3 == 0 ? random() : static_cast<unsigned>(changed[at]) ^ 1u << random() % 8);
    }
    if (FuzzCfi(reinterpret_cast<const uint8_t*>(changed.data()), changed.size()) != 0)
      FAIL("the target does not return 0");
  }
}

TEST_CASE("expressions, fuzzed", "[fuzz]") {
  Replay(FuzzExpression,
         {Ops({DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and, DW_OP_lit11, DW_OP_ge, DW_OP_lit3, DW_OP_shl,
               DW_OP_plus}),
          Ops({DW_OP_breg7, 0xa0, 1, DW_OP_deref}),
          Ops({DW_OP_lit1, DW_OP_lit5, DW_OP_swap, DW_OP_dup, DW_OP_plus, DW_OP_swap, DW_OP_lit1, DW_OP_minus,
               DW_OP_dup, DW_OP_bra, 0xf6, 0xff, DW_OP_drop}),
          Ops({DW_OP_const8u,
               1,
               2,
               3,
               4,
               5,
               6,
               7,
               8,
               DW_OP_const2s,
               1,
               2,
               DW_OP_div,
               DW_OP_constu,
               0x80,
               1,
               DW_OP_mod,
               DW_OP_pick,
               0,
               DW_OP_rot,
               DW_OP_deref_size,
               4,
               DW_OP_bregx,
               33,
               0,
               DW_OP_plus_uconst,
               3})},
         100'000);
}

}  // namespace
}  // namespace perfkit
