// Expressions, operation by operation.
#include "src/unwind/dwarf/cfi/expression.h"

#include <catch2/catch.hpp>
#include <random>

#include "tests/unwind/dwarf/cfi/crafted.h"

namespace perfkit {
namespace {

using testing::Ops;
using testing::Raw;
using testing::Sleb;
using testing::Uleb;
using Value = std::optional<uint64_t>;

// Register n holds 0x1000 * n, those from 40 on are unknown; memory holds its own address, cut to the size, below 2^32.
Value Run(const std::string& expression, Value initial = std::nullopt, Value cfa = std::nullopt, uint64_t bias = 0) {
  const auto memory = [](uint64_t address, unsigned size) -> Value {
    if (address >> 32 != 0) return std::nullopt;
    return size == 8 ? address : address & ((uint64_t{1} << size * 8) - 1);
  };
  const auto reg = [](uint64_t number) -> Value { return number < 40 ? Value(0x1000 * number) : std::nullopt; };
  return unwind::Evaluate(testing::BytesOf(expression), initial, {memory, reg, cfa, bias});
}

Value RunOps(std::initializer_list<int> bytes) { return Run(Ops(bytes)); }
uint64_t Minus(uint64_t value) { return -value; }

TEST_CASE("expressions push constants of every size and sign") {
  CHECK(RunOps({DW_OP_lit0}) == 0);
  CHECK(RunOps({DW_OP_lit31}) == 31);
  CHECK(RunOps({DW_OP_const1u, 0xff}) == 0xff);
  CHECK(RunOps({DW_OP_const1s, 0xff}) == Minus(1));
  CHECK(RunOps({DW_OP_const2u, 0xfe, 0xff}) == 0xfffe);
  CHECK(RunOps({DW_OP_const2s, 0xfe, 0xff}) == Minus(2));
  CHECK(Run(Ops({DW_OP_const4u}) + Raw(0xfffffffdu)) == 0xfffffffd);
  CHECK(Run(Ops({DW_OP_const4s}) + Raw(0xfffffffdu)) == Minus(3));
  CHECK(Run(Ops({DW_OP_const8u}) + Raw(uint64_t{1} << 63)) == uint64_t{1} << 63);
  CHECK(Run(Ops({DW_OP_const8s}) + Raw(int64_t{-4})) == Minus(4));
  CHECK(Run(Ops({DW_OP_constu}) + Uleb(300)) == 300);
  CHECK(Run(Ops({DW_OP_consts}) + Sleb(-300)) == Minus(300));
  CHECK(Run(Ops({DW_OP_addr}) + Raw(uint64_t{0x400}), {}, {}, 0x10000) == 0x10400);
}

TEST_CASE("expressions read registers, memory and the CFA, where they can") {
  CHECK(Run(Ops({DW_OP_breg7}) + Sleb(8)) == 0x7008);
  CHECK(Run(Ops({DW_OP_breg31}) + Sleb(-16)) == 0x1eff0);
  CHECK(Run(Ops({DW_OP_bregx}) + Uleb(33) + Sleb(1)) == 0x21001);
  CHECK(Run(Ops({DW_OP_bregx}) + Uleb(46) + Sleb(0)) == std::nullopt);
  CHECK(RunOps({DW_OP_const2u, 0x34, 0x12, DW_OP_deref}) == 0x1234);
  CHECK(RunOps({DW_OP_const2u, 0x34, 0x12, DW_OP_deref_size, 1}) == 0x34);
  CHECK(RunOps({DW_OP_lit1, DW_OP_deref_size, 0}) == std::nullopt);
  CHECK(RunOps({DW_OP_lit1, DW_OP_deref_size, 9}) == std::nullopt);
  CHECK(RunOps({DW_OP_const1s, 0xff, DW_OP_deref}) == std::nullopt);
  CHECK(Run(Ops({DW_OP_call_frame_cfa}), {}, 77) == 77);
  CHECK(Run(Ops({DW_OP_call_frame_cfa})) == std::nullopt);
  CHECK(Run(Ops({DW_OP_plus_uconst, 8}), 100) == 108);
  CHECK(Run("", 5) == 5);
  CHECK(Run("") == std::nullopt);
}

TEST_CASE("expressions move their stack about") {
  CHECK(RunOps({DW_OP_lit3, DW_OP_dup, DW_OP_mul}) == 9);
  CHECK(RunOps({DW_OP_lit3, DW_OP_lit4, DW_OP_drop}) == 3);
  CHECK(RunOps({DW_OP_lit3, DW_OP_lit4, DW_OP_over}) == 3);
  CHECK(RunOps({DW_OP_lit3, DW_OP_lit4, DW_OP_lit5, DW_OP_pick, 2}) == 3);
  CHECK(RunOps({DW_OP_lit3, DW_OP_lit4, DW_OP_swap, DW_OP_minus}) == 1);
  // 1 2 3 becomes 3 1 2: DWARF 5, 2.5.1.3.
  CHECK(RunOps({DW_OP_lit1, DW_OP_lit2, DW_OP_lit3, DW_OP_rot}) == 2);
  CHECK(RunOps({DW_OP_lit1, DW_OP_lit2, DW_OP_lit3, DW_OP_rot, DW_OP_drop}) == 1);
  CHECK(RunOps({DW_OP_lit1, DW_OP_lit2, DW_OP_lit3, DW_OP_rot, DW_OP_drop, DW_OP_drop}) == 3);
  for (const int op : {DW_OP_dup, DW_OP_drop, DW_OP_over, DW_OP_swap, DW_OP_rot, DW_OP_plus, DW_OP_deref, DW_OP_neg}) {
    CHECK(RunOps({op}) == std::nullopt);
  }
  CHECK(RunOps({DW_OP_lit1, DW_OP_pick, 1}) == std::nullopt);
  CHECK(RunOps({DW_OP_lit1, DW_OP_lit2, DW_OP_rot}) == std::nullopt);
}

TEST_CASE("expressions calculate") {
  const auto two = [](int left, int right, int op) { return RunOps({DW_OP_const1s, left, DW_OP_const1s, right, op}); };
  CHECK(two(12, 10, DW_OP_and) == 8);
  CHECK(two(12, 10, DW_OP_or) == 14);
  CHECK(two(12, 10, DW_OP_xor) == 6);
  CHECK(two(12, 10, DW_OP_plus) == 22);
  CHECK(two(10, 12, DW_OP_minus) == Minus(2));
  CHECK(two(-7, 2, DW_OP_div) == Minus(3));
  CHECK(two(7, 0, DW_OP_div) == std::nullopt);
  CHECK(two(7, 4, DW_OP_mod) == 3);
  CHECK(two(7, 0, DW_OP_mod) == std::nullopt);
  CHECK(two(-1, 4, DW_OP_shl) == Minus(16));
  CHECK(two(-1, 64, DW_OP_shl) == 0);
  CHECK(two(-1, 60, DW_OP_shr) == 15);
  CHECK(two(-1, 64, DW_OP_shr) == 0);
  CHECK(two(-16, 2, DW_OP_shra) == Minus(4));
  CHECK(two(-16, 100, DW_OP_shra) == Minus(1));
  CHECK(Run(Ops({DW_OP_const8u}) + Raw(uint64_t{1} << 63) + Ops({DW_OP_lit1, DW_OP_neg, DW_OP_div})) == uint64_t{1}
                                                                                                            << 63);
  CHECK(RunOps({DW_OP_lit5, DW_OP_neg}) == Minus(5));
  CHECK(RunOps({DW_OP_lit5, DW_OP_not}) == ~uint64_t{5});
  CHECK(RunOps({DW_OP_lit5, DW_OP_neg, DW_OP_abs}) == 5);
  CHECK(RunOps({DW_OP_lit5, DW_OP_abs}) == 5);
}

TEST_CASE("expressions compare with signs") {
  struct Case {
    int op, less, equal, greater;
  };
  for (const Case& c : {Case{DW_OP_eq, 0, 1, 0}, Case{DW_OP_ne, 1, 0, 1}, Case{DW_OP_lt, 1, 0, 0},
                        Case{DW_OP_le, 1, 1, 0}, Case{DW_OP_gt, 0, 0, 1}, Case{DW_OP_ge, 0, 1, 1}}) {
    CHECK(RunOps({DW_OP_const1s, 0xff, DW_OP_lit1, c.op}) == uint64_t(c.less));
    CHECK(RunOps({DW_OP_lit1, DW_OP_lit1, c.op}) == uint64_t(c.equal));
    CHECK(RunOps({DW_OP_lit1, DW_OP_const1s, 0xff, c.op}) == uint64_t(c.greater));
  }
}

TEST_CASE("expressions jump inside themselves, and not for ever") {
  CHECK(RunOps({DW_OP_skip, 1, 0, DW_OP_lit1, DW_OP_lit2}) == 2);
  CHECK(RunOps({DW_OP_lit7, DW_OP_lit1, DW_OP_bra, 1, 0, DW_OP_lit9, DW_OP_nop}) == 7);
  CHECK(RunOps({DW_OP_lit7, DW_OP_lit0, DW_OP_bra, 1, 0, DW_OP_lit9, DW_OP_nop}) == 9);
  CHECK(RunOps({DW_OP_lit7, DW_OP_skip, 0, 0}) == 7);
  CHECK(RunOps({DW_OP_lit7, DW_OP_skip, 1, 0}) == std::nullopt);
  CHECK(RunOps({DW_OP_lit7, DW_OP_skip, 0xfb, 0xff}) == std::nullopt);
  CHECK(RunOps({DW_OP_lit7, DW_OP_skip, 0xfd, 0xff}) == std::nullopt);  // to itself
  CHECK(RunOps({DW_OP_lit7, DW_OP_skip, 0xfc, 0xff}) == std::nullopt);  // fills the stack
  CHECK(RunOps({DW_OP_bra, 0, 0}) == std::nullopt);
  // Counts down from 5, doubling 1 each time.
  CHECK(RunOps({DW_OP_lit1, DW_OP_lit5, DW_OP_swap, DW_OP_dup, DW_OP_plus, DW_OP_swap, DW_OP_lit1, DW_OP_minus,
                DW_OP_dup, DW_OP_bra, 0xf6, 0xff, DW_OP_drop}) == 32);
}

TEST_CASE("the expression of a lazy PLT gives its CFA") {
  // binutils: rsp + 8, and 8 more once the entry has pushed. Register 16 is rip.
  const std::string plt = Ops({DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and, DW_OP_lit11, DW_OP_ge,
                               DW_OP_lit3, DW_OP_shl, DW_OP_plus});
  for (unsigned at = 0; at < 16; ++at) {
    const auto memory = [](uint64_t, unsigned) -> Value { return std::nullopt; };
    const auto reg = [&](uint64_t number) -> Value { return number == 7 ? 0x7000 : 0x1020 + at; };
    CHECK(unwind::Evaluate(testing::BytesOf(plt), std::nullopt, {memory, reg}) == (at < 11 ? 0x7008 : 0x7010));
  }
}

TEST_CASE("expressions that are cut off, too deep or not for here give nothing") {
  CHECK(RunOps({DW_OP_const2u, 1}) == std::nullopt);
  CHECK(RunOps({DW_OP_breg7}) == std::nullopt);
  CHECK(RunOps({DW_OP_breg7, 0x80}) == std::nullopt);
  CHECK(Run(std::string(64, DW_OP_lit1)) == 1);
  CHECK(Run(std::string(65, DW_OP_lit1)) == std::nullopt);
  for (const int op : {DW_OP_reg0, DW_OP_regx, DW_OP_fbreg, DW_OP_piece, DW_OP_xderef, DW_OP_call4, DW_OP_stack_value,
                       DW_OP_push_object_address, DW_OP_form_tls_address}) {
    CHECK(RunOps({DW_OP_lit1, DW_OP_lit1, op, 0, 0, 0, 0}) == std::nullopt);
  }
  CHECK(RunOps({DW_OP_lit1, 0}) == std::nullopt);
  CHECK(RunOps({DW_OP_lit1, 0xff}) == std::nullopt);
}

TEST_CASE("random expressions end") {
  std::mt19937 random(6);
  int values = 0;
  for (int round = 0; round < 100'000; ++round) {
    std::string expression(random() % 40, '\0');
    for (char& byte : expression) byte = static_cast<char>(random() % 4 == 0 ? random() : DW_OP_lit0 + random() % 3);
    values += Run(expression, 1).has_value();
  }
  CHECK(values > 1000);
}

}  // namespace
}  // namespace perfkit
