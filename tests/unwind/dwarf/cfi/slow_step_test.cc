// Steps with all registers, by rows made by hand: every recipe, and every way to end.
#include "src/unwind/dwarf/cfi/slow_step.h"

#include <catch2/catch.hpp>

#include "tests/unwind/stacks.h"

namespace perfkit::unwind {
namespace {

using testing::HandStack;

constexpr uint64_t kFullStack = 0x7ffc'0000'2000;

constexpr Recipe Saved(int64_t offset) { return {offset, 0, Recovery::kAtOffset}; }

// x86-64, CFA = rsp + 32, the return address below it.
CfiRow OrdinaryRow() {
  CfiRow row;
  row.cfa = {32, X86_64::kSp, Recovery::kRegister};
  row.registers[X86_64::kPc] = Saved(-8);
  row.return_register = X86_64::kPc;
  return row;
}

FullRegisters OrdinaryRegisters() {
  FullRegisters registers;
  for (unsigned i = 0; i < X86_64::kRegisters; ++i) registers.Set(i, 0x1000 + i);
  registers.Set(X86_64::kSp, kFullStack);
  registers.interrupted = false;
  return registers;
}

FullRegisters RegistersWithFp(uint64_t fp) {
  FullRegisters registers = OrdinaryRegisters();
  registers.Set(X86_64::kFp, fp);
  return registers;
}

HandStack OrdinaryStack() {
  return HandStack(kFullStack, 16).Put(kFullStack + 24, 0x401234).Put(kFullStack + 16, 0x7777);
}

struct FullOutcome {
  bool stepped;
  StackEnd why;
  FullRegisters registers;
};

FullOutcome StepFully(const CfiRow& row, const HandStack& stack, FullRegisters registers) {
  FullOutcome outcome{};
  outcome.stepped = SlowStep<X86_64>(row, stack.bytes(), 0x400000, registers, outcome.why);
  outcome.registers = registers;
  return outcome;
}

TEST_CASE("what calls preserve is kept, the rest is lost", "[slow_step]") {
  const FullOutcome next = StepFully(OrdinaryRow(), OrdinaryStack(), OrdinaryRegisters());
  REQUIRE(next.stepped);
  CHECK(next.registers.Get(X86_64::kPc) == 0x401234);
  CHECK(next.registers.Get(X86_64::kSp) == kFullStack + 32);
  CHECK_FALSE(next.registers.interrupted);
  for (const unsigned kept : {3, 6, 12, 13, 14, 15}) CHECK(next.registers.Get(kept) == 0x1000 + kept);
  for (const unsigned lost : {0, 1, 2, 4, 5, 8, 9, 10, 11}) CHECK_FALSE(next.registers.Get(lost).has_value());
}

TEST_CASE("each recipe recovers its register", "[slow_step]") {
  CfiRow row = OrdinaryRow();
  row.registers[3] = Saved(-16);
  row.registers[12] = {0, 0, Recovery::kUndefined};
  row.registers[13] = {-8, 0, Recovery::kOffset};
  row.registers[14] = {0, 10, Recovery::kRegister};
  row.registers[0] = {0, 0, Recovery::kSame};
  const FullOutcome next = StepFully(row, OrdinaryStack(), OrdinaryRegisters());
  REQUIRE(next.stepped);
  CHECK(next.registers.Get(3) == 0x7777);
  CHECK_FALSE(next.registers.Get(12).has_value());
  CHECK(next.registers.Get(13) == kFullStack + 24);
  CHECK(next.registers.Get(14) == 0x1000 + 10);
  CHECK(next.registers.Get(0) == 0x1000);
}

TEST_CASE("expressions read registers and the stack", "[slow_step]") {
  // DW_OP_breg10 0, DW_OP_deref; and DW_OP_plus_uconst 8 with the CFA below it.
  constexpr uint8_t kSection[] = {0x7a, 0x00, 0x06, 0x23, 0x08};
  CfiRow row = OrdinaryRow();
  row.section = std::as_bytes(std::span(kSection));
  row.cfa = {0, 3, Recovery::kExpression};
  row.registers[3] = {3, 2, Recovery::kAtExpression};
  row.registers[12] = {3, 2, Recovery::kExpression};
  HandStack stack = OrdinaryStack();
  stack.Put(kFullStack, kFullStack + 32).Put(kFullStack + 40, 0xb0b);
  FullRegisters registers = OrdinaryRegisters();
  registers.Set(10, kFullStack);
  const FullOutcome next = StepFully(row, stack, registers);
  REQUIRE(next.stepped);
  CHECK(next.registers.Get(X86_64::kPc) == 0x401234);
  CHECK(next.registers.Get(3) == 0xb0b);
  CHECK(next.registers.Get(12) == kFullStack + 40);
}

TEST_CASE("a CFA in an unknown register can't be found", "[slow_step]") {
  CfiRow row = OrdinaryRow();
  row.cfa = {0, 10, Recovery::kRegister};
  FullRegisters registers = OrdinaryRegisters();
  registers.known &= ~(uint64_t{1} << 10);
  const FullOutcome next = StepFully(row, OrdinaryStack(), registers);
  CHECK_FALSE(next.stepped);
  CHECK(next.why == StackEnd::kUnreadable);
}

TEST_CASE("a walk with all registers ends as one with four does", "[slow_step]") {
  CfiRow row = OrdinaryRow();
  const auto why = [&](const FullRegisters& registers) { return StepFully(row, OrdinaryStack(), registers).why; };
  row.registers[X86_64::kPc] = {0, 0, Recovery::kUndefined};
  CHECK(why(OrdinaryRegisters()) == StackEnd::kRoot);
  row = OrdinaryRow();
  row.cfa.value = 8;
  CHECK(why(RegistersWithFp(0)) == StackEnd::kRoot);
  row.cfa.value = 0;
  CHECK(why(OrdinaryRegisters()) == StackEnd::kUnreadable);
  row.cfa.value = 1 << 20;
  CHECK(why(OrdinaryRegisters()) == StackEnd::kTruncated);
  row = OrdinaryRow();
  row.registers[X86_64::kSp] = {-32, 0, Recovery::kOffset};
  CHECK(why(OrdinaryRegisters()) == StackEnd::kNoProgress);
  row.signal_frame = true;  // a handler's stack may lie above the one that it interrupted
  const FullOutcome signal = StepFully(row, OrdinaryStack(), OrdinaryRegisters());
  REQUIRE(signal.stepped);
  CHECK(signal.registers.interrupted);
}

TEST_CASE("an epilogue of the innermost frame has taken back what lies below sp", "[slow_step]") {
  CfiRow row = OrdinaryRow();
  row.registers[3] = Saved(-48);
  FullRegisters registers = OrdinaryRegisters();
  registers.interrupted = true;
  CHECK(StepFully(row, OrdinaryStack(), registers).registers.Get(3) == 0x1003);
  registers.interrupted = false;
  CHECK_FALSE(StepFully(row, OrdinaryStack(), registers).registers.Get(3).has_value());
}

TEST_CASE("what a realigned frame saved is taken back where fp points above its CFA", "[slow_step]") {
  constexpr uint8_t kSection[] = {0x76, 0x00};  // DW_OP_breg6 0
  CfiRow row = OrdinaryRow();
  row.section = std::as_bytes(std::span(kSection));
  row.registers[X86_64::kFp] = {0, 2, Recovery::kAtExpression};
  const HandStack stack = OrdinaryStack().Put(kFullStack + 64, 0xbad);
  FullRegisters registers = RegistersWithFp(kFullStack + 64);
  registers.interrupted = true;
  CHECK(StepFully(row, stack, registers).registers.Get(X86_64::kFp) == kFullStack + 64);
  registers.Set(X86_64::kFp, kFullStack + 16);
  CHECK(StepFully(row, stack, registers).registers.Get(X86_64::kFp) == 0x7777);
  registers = RegistersWithFp(kFullStack + 64);
  registers.interrupted = false;
  CHECK(StepFully(row, stack, registers).registers.Get(X86_64::kFp) == 0xbad);
}

TEST_CASE("a return address in a register leaves the innermost frame without stack", "[slow_step]") {
  CfiRow row = OrdinaryRow();
  row.cfa.value = 0;
  row.registers[X86_64::kPc] = {0, 2, Recovery::kRegister};
  FullRegisters registers = OrdinaryRegisters();
  CHECK(StepFully(row, OrdinaryStack(), registers).why == StackEnd::kNoProgress);
  registers.interrupted = true;
  const FullOutcome next = StepFully(row, OrdinaryStack(), registers);
  REQUIRE(next.stepped);
  CHECK(next.registers.Get(X86_64::kPc) == 0x1002);
}

TEST_CASE("aarch64: an innermost leaf's return address is in lr, a caller's is not", "[slow_step]") {
  CfiRow row;
  row.cfa = {0, Aarch64::kSp, Recovery::kRegister};
  row.return_register = Aarch64::kLr;
  const HandStack stack(kFullStack, 4);
  FullRegisters registers;
  registers.Set(Aarch64::kSp, kFullStack);
  registers.Set(Aarch64::kLr, 0x00ab'0000'0040'4444);
  registers.Set(Aarch64::kPc, 0x400000);
  StackEnd why{};
  FullRegisters leaf = registers;
  REQUIRE(SlowStep<Aarch64>(row, stack.bytes(), 0, leaf, why));
  CHECK(leaf.Get(Aarch64::kPc) == 0x404444);
  CHECK(leaf.Get(Aarch64::kSp) == kFullStack);
  registers.interrupted = false;
  CHECK_FALSE(SlowStep<Aarch64>(row, stack.bytes(), 0, registers, why));
}

}  // namespace
}  // namespace perfkit::unwind
