// All ways in which a module may contain call frame information, and their pitfalls.
#include "src/unwind/dwarf/cfi/cfi.h"

#include <catch2/catch.hpp>

#include "src/unwind/dwarf/live/frozen_table.h"
#include "tests/unwind/dwarf/cfi/crafted.h"

namespace perfkit {
namespace {

using testing::Module;
using testing::Ops;
using testing::Raw;
using testing::Records;
using testing::Uleb;
using unwind::Cfi;
using unwind::Recovery;
using unwind::Rule;
using unwind::RuleKind;

// rsp + offset, rbp as it is.
Rule Sp(int32_t offset) { return {.offset = offset, .kind = RuleKind::kSp}; }
const Rule kNothing;

// As above, from a file that is kept as long as needed. FrozenTable must return the same.
class Loaded {
 public:
  explicit Loaded(std::string file, std::string debug_file = "")
      : file_(std::move(file)), debug_(std::move(debug_file)) {
    std::optional<elf::Image> debug;
    if (!debug_.empty()) debug = *elf::Image::Parse(testing::BytesOf(debug_));
    cfi.emplace(*elf::Image::Parse(testing::BytesOf(file_)), debug);
    frozen_ = unwind::FrozenTable(*cfi);
  }
  Rule At(uint64_t address) {
    const Rule rule = cfi->At(address);
    CHECK(frozen_.At(address) == rule);
    return rule;
  }

  std::optional<Cfi> cfi;

 private:
  std::string file_, debug_;
  unwind::FrozenTable frozen_;
};

// push, and ret 4 bytes later.
const std::string kPushAndPop =
    Ops({DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16, DW_CFA_advance_loc | 4, DW_CFA_def_cfa_offset, 8});

Records TwoFunctions() {
  Records records;
  records.Cie();
  records.Fde(0x1000, 0x20, kPushAndPop);
  records.Fde(0x1040, 0x10, Ops({DW_CFA_def_cfa_offset, 32}));
  return records;
}

TEST_CASE("rules come from .eh_frame, however the module shows it") {
  for (const testing::Shape& shape : {testing::Shape{},
                                      {.header = false},
                                      {.header_after = true},
                                      {.sections = false},
                                      {.header_after = true, .sections = false}}) {
    Loaded loaded(Module(TwoFunctions(), shape));
    INFO(shape.header << shape.header_after << shape.sections);
    CHECK(loaded.At(0xfff) == kNothing);
    CHECK(loaded.At(0x1000) == Sp(8));
    CHECK(loaded.At(0x1001) == Sp(16));
    CHECK(loaded.At(0x1004) == Sp(16));
    CHECK(loaded.At(0x1005) == Sp(8));
    CHECK(loaded.At(0x101f) == Sp(8));
    CHECK(loaded.At(0x1040) == Sp(32));
  }
}

TEST_CASE("padding belongs to the function before it, up to 15 bytes and not into the next one") {
  Records records = TwoFunctions();
  records.Fde(0x1054, 4, Ops({DW_CFA_def_cfa_offset, 64}));
  Loaded loaded(Module(records));
  CHECK(loaded.At(0x1020) == Sp(8));
  CHECK(loaded.At(0x102e) == Sp(8));
  CHECK(loaded.At(0x102f) == kNothing);
  CHECK(loaded.At(0x103f) == kNothing);
  CHECK(loaded.At(0x1053) == Sp(32));
  CHECK(loaded.At(0x1054) == Sp(64));
  CHECK(loaded.At(0x1058 + 14) == Sp(64));
  CHECK(loaded.At(0x1058 + 15) == kNothing);
}

TEST_CASE("records of no length cover nothing and hide nothing") {
  for (const bool header : {true, false}) {
    Records records;
    records.Cie();
    records.Fde(0x1000, 0x20, kPushAndPop);
    records.Fde(0x1000, 0, Ops({DW_CFA_def_cfa_offset, 48}));
    records.Fde(0x1010, 0, Ops({DW_CFA_def_cfa_offset, 48}));
    records.Fde(0x1030, 0, Ops({DW_CFA_def_cfa_offset, 48}));
    Loaded loaded(Module(records, {.header = header}));
    CHECK(loaded.At(0x1001) == Sp(16));
    CHECK(loaded.At(0x1010) == Sp(8));
    CHECK(loaded.At(0x101f) == Sp(8));
    CHECK(loaded.At(0x1030) == kNothing);
  }
}

TEST_CASE("a search table that can't be searched is not used") {
  Records unsorted;
  unsorted.Cie();
  unsorted.Fde(0x1040, 0x10, Ops({DW_CFA_def_cfa_offset, 32}));
  unsorted.Fde(0x1000, 0x20);
  std::string encoding = Module(TwoFunctions());
  const size_t header = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Phdr);
  encoding[header + 3] = DW_EH_PE_pcrel | DW_EH_PE_sdata4;
  std::string count = Module(TwoFunctions());
  count.replace(header + 8, 4, Raw(3));
  std::string version = Module(TwoFunctions());
  version[header] = 2;
  for (const std::string& file : {Module(unsorted), encoding, count, version}) {
    Loaded loaded(file);
    CHECK(loaded.At(0x1000) == Sp(8));
    CHECK(loaded.At(0x1045) == Sp(32));
  }
}

TEST_CASE("the state that is restored holds from there on, and not before") {
  Records records;
  records.Cie();
  records.Fde(0x1000, 0x40,
              Ops({DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16, DW_CFA_offset | 6, 2, DW_CFA_advance_loc | 3,
                   DW_CFA_remember_state, DW_CFA_def_cfa, 6, 16, DW_CFA_advance_loc | 4, DW_CFA_def_cfa, 7, 8,
                   DW_CFA_restore | 6, DW_CFA_advance_loc | 8, DW_CFA_restore_state}));
  Loaded loaded(Module(records));
  const Rule pushed{.offset = 16, .slot = -2, .kind = RuleKind::kSp, .flags = Rule::kRestoresFp};
  CHECK(loaded.At(0x1000) == Sp(8));
  CHECK(loaded.At(0x1003) == pushed);
  CHECK(loaded.At(0x1004) == Rule{.offset = 16, .slot = -2, .kind = RuleKind::kFp, .flags = Rule::kRestoresFp});
  CHECK(loaded.At(0x100f) == Sp(8));
  CHECK(loaded.At(0x1010) == pushed);
  CHECK(loaded.At(0x103f) == pushed);
}

TEST_CASE("relative pointers count from where they stand") {
  Records records(true, 0x7fff'0000);
  records.Cie(testing::kX86Start, 16, "zR", DW_EH_PE_pcrel | DW_EH_PE_sdata4);
  records.Fde(0x7ffe'0000, 0x20,
              Ops({DW_CFA_set_loc}) + Raw(0x7ffe'0010 - 0x7fff'0000 - 42) + Ops({DW_CFA_def_cfa_offset, 24}));
  // The operand of set_loc stands 42 bytes into the section: a CIE of 24, then 4 + 4 + 4 + 4 + 1, and the opcode.
  REQUIRE(records.Header().size() == 20);
  for (const bool header : {true, false}) {
    Loaded loaded(Module(records, {.header = header}));
    CHECK(loaded.At(0x7ffe'000f) == Sp(8));
    CHECK(loaded.At(0x7ffe'0010) == Sp(24));
  }
}

// A module without .eh_frame, and with .debug_frame.
std::string DebugModule(const std::string& bytes, uint64_t flags = 0, const char* name = ".debug_frame") {
  testing::ElfBuilder builder;
  builder.AddSection(name, {.sh_type = SHT_PROGBITS, .sh_flags = flags}, bytes);
  return builder.Build();
}

Records DebugRecords() {
  Records records(false);
  records.Cie();
  records.Fde(0, 0x20, Ops({DW_CFA_def_cfa_offset, 24}));  // of a function that the linker threw away
  records.Fde(0x1000, 0x20, kPushAndPop);
  return records;
}

// What Packed appends: libelf takes nothing that has grown.
constexpr size_t kPadding = 259;

// A stored block: deflate without deflating; and one of fixed codes for a zero, 258 more, and the end (RFC 1950, 1951).
std::string Deflated(const std::string& bytes) {
  uint32_t a = 1, b = 0;
  for (const char byte : bytes + std::string(kPadding, '\0')) {
    a = (a + static_cast<uint8_t>(byte)) % 65521;
    b = (b + a) % 65521;
  }
  const auto size = static_cast<uint16_t>(bytes.size());
  const uint32_t sum = __builtin_bswap32(b << 16 | a);
  return Ops({0x78, 0x01, 0x00}) + Raw(size) + Raw(static_cast<uint16_t>(~size)) + bytes + Ops({0x63, 0x18, 0x05, 0}) +
         Raw(sum);
}

std::string Packed(const std::string& bytes) {
  const Elf64_Chdr header{
      .ch_type = ELFCOMPRESS_ZLIB, .ch_reserved = 0, .ch_size = bytes.size() + kPadding, .ch_addralign = 1};
  return Raw(header) + Deflated(bytes);
}

// As GNU tools did before, in .zdebug_frame.
std::string PackedTheOldWay(const std::string& bytes) {
  return "ZLIB" + Raw(__builtin_bswap64(uint64_t{bytes.size() + kPadding})) + Deflated(bytes);
}

TEST_CASE(".debug_frame serves where there is no .eh_frame: plain, compressed, or in a file of its own") {
  const std::string bytes = DebugRecords().bytes();
  const std::string plain = DebugModule(bytes), packed = DebugModule(Packed(bytes), SHF_COMPRESSED),
                    old_way = DebugModule(PackedTheOldWay(bytes), 0, ".zdebug_frame");
  const std::string stripped = testing::ElfBuilder().Build();
  const std::pair<std::string, std::string> files[] = {{plain, ""},       {packed, ""},       {old_way, ""},
                                                       {stripped, plain}, {stripped, packed}, {stripped, old_way}};
  for (const auto& [module, debug] : files) {
    Loaded loaded(module, debug);
    CHECK(loaded.At(0x1000) == Sp(8));
    CHECK(loaded.At(0x1004) == Sp(16));
    CHECK(loaded.At(0x102f) == kNothing);
    CHECK(loaded.At(0) == kNothing);
  }
}

TEST_CASE("a section that lies about what it unpacks to has no information") {
  std::string packed = Packed(DebugRecords().bytes());
  for (const uint64_t size : {uint64_t{1} << 40, uint64_t{1} << 62, uint64_t{200'000}}) {
    std::string lying = packed;
    lying.replace(offsetof(Elf64_Chdr, ch_size), 8, Raw(size));
    CHECK(Loaded(DebugModule(lying, SHF_COMPRESSED)).At(0x1000) == kNothing);
  }
  packed[sizeof(Elf64_Chdr) + 20] ^= 1;
  CHECK(Loaded(DebugModule(packed, SHF_COMPRESSED)).At(0x1000) == kNothing);
  packed[0] = 9;  // an unknown method
  CHECK(Loaded(DebugModule(packed, SHF_COMPRESSED)).At(0x1000) == kNothing);
  CHECK(Loaded(DebugModule("x", SHF_COMPRESSED)).At(0x1000) == kNothing);
  CHECK(Loaded(DebugModule("ZLIB", 0, ".zdebug_frame")).At(0x1000) == kNothing);
}

TEST_CASE(".debug_frame fills what .eh_frame leaves open, and comes before padding") {
  Records debug(false);
  debug.Cie();
  debug.Fde(0x1010, 0x18, Ops({DW_CFA_def_cfa_offset, 80}));  // .eh_frame has 0x1000-0x101f
  debug.Fde(0x2000, 0x10, Ops({DW_CFA_def_cfa_offset, 96}));
  Loaded loaded(Module(TwoFunctions()), DebugModule(debug.bytes()));
  CHECK(loaded.At(0x101f) == Sp(8));
  CHECK(loaded.At(0x1020) == Sp(80));
  CHECK(loaded.At(0x1028) == Sp(8));  // padding of the one and of the other: .eh_frame's
  CHECK(loaded.At(0x102f) == Sp(80));
  CHECK(loaded.At(0x1037) == kNothing);
  CHECK(loaded.At(0x1040) == Sp(32));
  CHECK(loaded.At(0x2008) == Sp(96));
}

TEST_CASE("modules without call frame information, and those of other machines, have no rules and no cost") {
  testing::Shape other;
  other.machine = EM_RISCV;
  for (const std::string& file : {testing::ElfBuilder().Build(), Module(TwoFunctions(), other)}) {
    Loaded loaded(file);
    CHECK(loaded.At(0x1000) == kNothing);
    CHECK(loaded.cfi->heap_bytes() == 0);
    unwind::CfiRow row;
    CHECK_FALSE(loaded.cfi->Full(0x1000, row));
  }
}

TEST_CASE("what a damaged program said before the damage stands") {
  Records records;
  records.Cie();
  records.Fde(0x1000, 0x20,
              Ops({DW_CFA_advance_loc | 4, DW_CFA_def_cfa_offset, 16, DW_CFA_advance_loc | 4, 0x3f, 0, 0}));
  records.Fde(0x1040, 0x20, Ops({DW_CFA_advance_loc | 4, DW_CFA_restore_state}));
  Loaded loaded(Module(records));
  CHECK(loaded.At(0x1003) == Sp(8));
  CHECK(loaded.At(0x1004) == Sp(16));
  CHECK(loaded.At(0x1008) == kNothing);
  CHECK(loaded.At(0x101f) == kNothing);
  CHECK(loaded.At(0x1043) == Sp(8));
  CHECK(loaded.At(0x1044) == kNothing);
}

TEST_CASE("whole rows say where every register is") {
  Records records;
  records.Cie();
  records.Fde(0x1000, 0x40, testing::kEveryRecipe);
  Loaded loaded(Module(records));
  CHECK(loaded.At(0x1000).kind == RuleKind::kSlow);
  unwind::CfiRow row;
  REQUIRE(loaded.cfi->Full(0x1000, row));
  CHECK(row.return_register == 16);
  CHECK_FALSE(row.signal_frame);
  CHECK(row.cfa.how == Recovery::kExpression);
  CHECK(row.Expression(row.cfa).size() == 2);
  CHECK(row.Expression(row.cfa)[0] == std::byte{DW_OP_breg10});
  CHECK(row.Of(16) == unwind::Recipe{.value = -8, .how = Recovery::kAtOffset});
  CHECK(row.Of(3) == unwind::Recipe{.value = -32, .how = Recovery::kAtOffset});
  CHECK(row.Of(12) == unwind::Recipe{.number = 13, .how = Recovery::kRegister});
  CHECK(row.Of(14) == unwind::Recipe{.value = -16, .how = Recovery::kOffset});
  CHECK(row.Of(15).how == Recovery::kSame);
  CHECK(row.Of(0).how == Recovery::kUndefined);
  CHECK(row.Of(6).how == Recovery::kAtExpression);
  CHECK(row.Expression(row.Of(6))[1] == std::byte{0x70});
  CHECK(row.Of(1).how == Recovery::kExpression);
  CHECK(row.Of(2) == unwind::Recipe{.value = 8, .how = Recovery::kAtOffset});
  CHECK(row.Of(5).how == Recovery::kUnspecified);
  CHECK(row.Of(40).how == Recovery::kUnspecified);
  CHECK_FALSE(loaded.cfi->Full(0x2000, row));
}

// Otherwise each frame of a stack could take as long as a file of many megabytes.
TEST_CASE("a program of more than 128 KiB has no whole rows") {
  Records records;
  records.Cie();
  records.Fde(0x1000, 0x40, testing::kEveryRecipe + std::string(127 << 10, DW_CFA_nop));
  records.Fde(0x2000, 0x40, testing::kEveryRecipe + std::string(129 << 10, DW_CFA_nop));
  Loaded loaded(Module(records));
  unwind::CfiRow row;
  CHECK(loaded.cfi->Full(0x1000, row));
  CHECK_FALSE(loaded.cfi->Full(0x2000, row));
  CHECK(loaded.At(0x2000).kind == RuleKind::kSlow);
}

TEST_CASE("what is not asked for is not read") {
  const std::string file = Module(TwoFunctions(), {.header = false});
  Cfi cfi(*elf::Image::Parse(testing::BytesOf(file)));
  const size_t before = cfi.heap_bytes();
  cfi.At(0x1000);
  CHECK(before < 4096);
  CHECK(cfi.heap_bytes() > before);
}

TEST_CASE("look-ups allocate when a function is met first, and not again") {
  Loaded loaded(Module(TwoFunctions()));
  loaded.At(0x1000);
  loaded.At(0x1040);
  const size_t heap = loaded.cfi->heap_bytes();
  CHECK(heap > 0);
  for (uint64_t address = 0xff0; address < 0x1060; ++address) loaded.At(address);
  CHECK(loaded.cfi->heap_bytes() == heap);
}

}  // namespace
}  // namespace perfkit
