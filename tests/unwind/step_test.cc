// One step, for every kind of rule and every way to end, on stacks made by hand.
#include "src/unwind/step.h"

#include <ucontext.h>

#include <catch2/catch.hpp>
#include <random>

#include "tests/unwind/stacks.h"

namespace perfkit::unwind {
namespace {

using testing::HandStack;

constexpr uint64_t kStack = 0x7ffc'0000'1000;

// What a step gave: `why` only where it did not step.
struct Outcome {
  bool stepped = false;
  StackEnd why = StackEnd::kLimit;
  WalkState at;
};

template <class Machine>
Outcome StepOnce(const Rule& rule, const StackBytes& stack, WalkState at) {
  Outcome outcome;
  outcome.stepped = Step<Machine>(rule, stack, at, outcome.why);
  outcome.at = at;
  return outcome;
}

WalkState At(uint64_t pc, uint64_t sp, uint64_t fp, bool interrupted) {
  return {.pc = pc, .sp = sp, .fp = fp, .interrupted = interrupted};
}

TEST_CASE("x86-64: the CFA by sp or by fp, with and without a saved fp", "[step]") {
  const HandStack stack = HandStack(kStack, 16).Put(kStack + 24, 0x401234).Put(kStack + 16, 0x7777);
  SECTION("sp, fp saved") {
    const Outcome next =
        StepOnce<X86_64>({32, -2, RuleKind::kSp, Rule::kRestoresFp}, stack.bytes(), At(0x400000, kStack, 0x5555, true));
    REQUIRE(next.stepped);
    CHECK(next.at.pc == 0x401234);
    CHECK(next.at.sp == kStack + 32);
    CHECK(next.at.fp == 0x7777);
    CHECK_FALSE(next.at.interrupted);
    CHECK_FALSE(next.at.guess);
  }
  SECTION("sp, fp as it was") {
    const Outcome next = StepOnce<X86_64>({32, 0, RuleKind::kSp, 0}, stack.bytes(), At(0x400000, kStack, 0x5555, true));
    REQUIRE(next.stepped);
    CHECK(next.at.fp == 0x5555);
  }
  SECTION("fp") {
    const Outcome next = StepOnce<X86_64>({16, -2, RuleKind::kFp, Rule::kRestoresFp}, stack.bytes(),
                                          At(0x400000, kStack, kStack + 16, false));
    REQUIRE(next.stepped);
    CHECK(next.at.pc == 0x401234);
    CHECK(next.at.sp == kStack + 32);
    CHECK(next.at.fp == 0x7777);
  }
  SECTION("what the caller is was interrupted") {
    const Outcome next =
        StepOnce<X86_64>({32, 0, RuleKind::kSp, Rule::kSignalFrame}, stack.bytes(), At(0x400000, kStack, 0, false));
    REQUIRE(next.stepped);
    CHECK(next.at.interrupted);
  }
}

TEST_CASE("x86-64: a lazy PLT stub has pushed one word more in its second half", "[step]") {
  const HandStack stack = HandStack(kStack, 4).Put(kStack, 0x401111).Put(kStack + 8, 0x402222);
  const Rule plt{11, 0, RuleKind::kPlt, 0};
  for (uint64_t pc = 0x400020; pc < 0x400030; ++pc) {
    const Outcome next = StepOnce<X86_64>(plt, stack.bytes(), At(pc, kStack, 0, true));
    REQUIRE(next.stepped);
    CHECK(next.at.pc == (pc % 16 < 11 ? 0x401111 : 0x402222));
    CHECK(next.at.sp == kStack + (pc % 16 < 11 ? 8 : 16));
  }
}

TEST_CASE("x86-64: in an epilogue that has taken fp back, fp is what it is", "[step]") {
  // sp points to the return address: fp's slot is below it.
  const HandStack stack = HandStack(kStack, 4).Put(kStack, 0x401111);
  const Rule rule{8, -2, RuleKind::kSp, Rule::kRestoresFp};
  const Outcome leaf = StepOnce<X86_64>(rule, stack.bytes(), At(0x400000, kStack, 0x5555, true));
  REQUIRE(leaf.stepped);
  CHECK(leaf.at.fp == 0x5555);
  CHECK(leaf.at.pc == 0x401111);
  // A frame that waits for a callee to return has not begun its epilogue.
  const Outcome inner = StepOnce<X86_64>(rule, stack.bytes(), At(0x400000, kStack, 0x5555, false));
  CHECK_FALSE(inner.stepped);
  CHECK(inner.why == StackEnd::kUnreadable);
}

TEST_CASE("x86-64: what a signal interrupted is in the ucontext", "[step]") {
  const uint64_t context = kStack + 64;
  const HandStack stack = HandStack(kStack, 64)
                              .Put(context + 40 + 8 * 10, 0xb9)       // rbp
                              .Put(context + 40 + 8 * 15, 0x7fff00)   // rsp
                              .Put(context + 40 + 8 * 16, 0x404040);  // rip
  const Outcome next = StepOnce<X86_64>({64, 0, RuleKind::kSignal, 0}, stack.bytes(), At(1, kStack, 0, false));
  REQUIRE(next.stepped);
  CHECK(next.at.pc == 0x404040);
  CHECK(next.at.sp == 0x7fff00);
  CHECK(next.at.fp == 0xb9);
  CHECK(next.at.interrupted);
  // That is another stack, which was not copied.
  const Outcome beyond = StepOnce<X86_64>({16, 0, RuleKind::kSp, 0}, stack.bytes(), next.at);
  CHECK_FALSE(beyond.stepped);
  CHECK(beyond.why == StackEnd::kTruncated);
  // The ucontext itself is cut off.
  const Outcome cut = StepOnce<X86_64>({400, 0, RuleKind::kSignal, 0}, stack.bytes(), At(1, kStack, 0, false));
  CHECK_FALSE(cut.stepped);
  CHECK(cut.why == StackEnd::kTruncated);
}

TEST_CASE("the root has no caller, by its rule or by zeros where one would be", "[step]") {
  const HandStack stack(kStack, 4);
  const Outcome root = StepOnce<X86_64>({0, 0, RuleKind::kRoot, 0}, stack.bytes(), At(1, kStack, 0, true));
  CHECK_FALSE(root.stepped);
  CHECK(root.why == StackEnd::kRoot);
  const Outcome zero = StepOnce<X86_64>({8, 0, RuleKind::kSp, 0}, stack.bytes(), At(1, kStack, 0, true));
  CHECK_FALSE(zero.stepped);
  CHECK(zero.why == StackEnd::kRoot);
  // A return address of 0 alone is damage: nothing is mapped there. But a new thread has its parent's fp.
  CHECK(StepOnce<X86_64>({16, 0, RuleKind::kSp, 0}, stack.bytes(), At(1, kStack, 5, true)).stepped);
  CHECK(StepOnce<X86_64>({8, 0, RuleKind::kSp, 0}, stack.bytes(), At(1, kStack, 5, false)).stepped);
  const Outcome thread = StepOnce<X86_64>({8, 0, RuleKind::kSp, 0}, stack.bytes(), At(1, kStack, 5, true));
  CHECK_FALSE(thread.stepped);
  CHECK(thread.why == StackEnd::kRoot);
}

TEST_CASE("what lies after the bytes is truncated, what lies elsewhere is unreadable", "[step]") {
  const HandStack stack(kStack, 4);
  const auto why = [&](const Rule& rule, uint64_t fp) {
    return StepOnce<X86_64>(rule, stack.bytes(), At(1, kStack, fp, false)).why;
  };
  CHECK(why({48, 0, RuleKind::kSp, 0}, 0) == StackEnd::kTruncated);
  CHECK(why({8, 0, RuleKind::kFp, 0}, kStack + (8 << 20)) == StackEnd::kTruncated);
  CHECK(why({8, 0, RuleKind::kFp, 0}, kStack + (uint64_t{1} << 40)) == StackEnd::kUnreadable);
  CHECK(why({16, -20, RuleKind::kSp, Rule::kRestoresFp}, 0) == StackEnd::kUnreadable);
  // The last word is readable, and no part of a word is.
  const Rule last{32, 0, RuleKind::kSp, 0}, half{36, 0, RuleKind::kSp, 0};
  CHECK(StepOnce<X86_64>(last, stack.bytes(), At(1, kStack, 0, true)).why == StackEnd::kRoot);
  CHECK(StepOnce<X86_64>(half, stack.bytes(), At(1, kStack, 0, true)).why == StackEnd::kTruncated);
  CHECK(StepOnce<X86_64>(last, StackBytes(), At(1, kStack, 0, true)).why == StackEnd::kTruncated);
}

TEST_CASE("a caller's frame lies above its callee's", "[step]") {
  const HandStack stack = HandStack(kStack, 16).Put(kStack + 24, 0x401111);
  const auto why = [&](const Rule& rule, uint64_t sp, uint64_t fp) {
    return StepOnce<X86_64>(rule, stack.bytes(), At(1, sp, fp, true)).why;
  };
  CHECK(why({0, 0, RuleKind::kSp, 0}, kStack, 0) == StackEnd::kNoProgress);
  CHECK(why({-16, 0, RuleKind::kSp, 0}, kStack + 32, 0) == StackEnd::kNoProgress);
  CHECK(why({16, 0, RuleKind::kFp, 0}, kStack + 40, kStack + 16) == StackEnd::kNoProgress);
  CHECK(why({16, 0, RuleKind::kSp, 0}, UINT64_MAX - 7, 0) == StackEnd::kNoProgress);  // it wraps
}

TEST_CASE("without information a chain of frame pointers is followed, and marked", "[step]") {
  const HandStack stack = HandStack(kStack, 16).Put(kStack + 16, kStack + 64).Put(kStack + 24, 0x401111);
  const Rule none;
  const Outcome next = StepOnce<X86_64>(none, stack.bytes(), At(1, kStack, kStack + 16, true));
  REQUIRE(next.stepped);
  CHECK(next.at.pc == 0x401111);
  CHECK(next.at.fp == kStack + 64);
  CHECK(next.at.sp == kStack + 32);
  CHECK(next.at.guess);
  const auto why = [&](uint64_t fp) { return StepOnce<X86_64>(none, stack.bytes(), At(1, kStack + 8, fp, true)).why; };
  CHECK(why(kStack) == StackEnd::kNoInfo);       // below sp
  CHECK(why(kStack + 17) == StackEnd::kNoInfo);  // not aligned
  CHECK(why(0) == StackEnd::kNoInfo);
  CHECK(why(stack.end() - 8) == StackEnd::kNoInfo);  // outside
}

TEST_CASE("without information a caller may have no frame pointer: what it has there leads nowhere", "[step]") {
  for (const uint64_t other : {uint64_t{0x5555'1230}, kStack + 16}) {  // some object's address; this very frame's
    const HandStack stack = HandStack(kStack, 16).Put(kStack + 16, other).Put(kStack + 24, 0x401111);
    const Outcome next = StepOnce<X86_64>(Rule(), stack.bytes(), At(1, kStack, kStack + 16, true));
    REQUIRE(next.stepped);
    CHECK(next.at.pc == 0x401111);
    CHECK(next.at.sp == kStack + 32);
    CHECK(StepOnce<X86_64>(Rule(), stack.bytes(), next.at).why == StackEnd::kNoInfo);
  }
}

TEST_CASE("aarch64: the return address is in lr, after fp, or alone", "[step]") {
  HandStack stack(kStack, 16);
  stack.Put(kStack + 16, 0x7777).Put(kStack + 24, 0x401234);
  WalkState leaf = At(0x400000, kStack, 0x5555, true);
  leaf.lr = 0x00ab'0000'0040'4444;  // with bits of pointer authentication
  SECTION("in lr, and nothing is on the stack") {
    const Outcome next = StepOnce<Aarch64>({0, 0, RuleKind::kSp, Rule::kReturnInLr}, stack.bytes(), leaf);
    REQUIRE(next.stepped);
    CHECK(next.at.pc == 0x404444);
    CHECK(next.at.sp == kStack);
    CHECK(next.at.fp == 0x5555);
  }
  SECTION("in lr of a frame that has called: it is lost") {
    leaf.interrupted = false;
    const Outcome next = StepOnce<Aarch64>({16, 0, RuleKind::kSp, Rule::kReturnInLr}, stack.bytes(), leaf);
    CHECK_FALSE(next.stepped);
    CHECK(next.why == StackEnd::kNoProgress);
  }
  SECTION("a frame record") {
    const Outcome next = StepOnce<Aarch64>({48, -4, RuleKind::kSp, Rule::kRestoresFp}, stack.bytes(), leaf);
    REQUIRE(next.stepped);
    CHECK(next.at.pc == 0x401234);
    CHECK(next.at.sp == kStack + 48);
    CHECK(next.at.fp == 0x7777);
  }
  SECTION("alone") {
    const Outcome next = StepOnce<Aarch64>({32, -1, RuleKind::kSp, Rule::kReturnAtSlot}, stack.bytes(), leaf);
    REQUIRE(next.stepped);
    CHECK(next.at.pc == 0x401234);
    CHECK(next.at.fp == 0x5555);
  }
  SECTION("the CFA by x29") {
    leaf.fp = kStack + 16;
    const Outcome next = StepOnce<Aarch64>({32, -4, RuleKind::kFp, Rule::kRestoresFp}, stack.bytes(), leaf);
    REQUIRE(next.stepped);
    CHECK(next.at.pc == 0x401234);
    CHECK(next.at.sp == kStack + 48);
  }
}

TEST_CASE("aarch64: what a signal interrupted is in the ucontext, lr as well", "[step]") {
  const uint64_t context = kStack + 128;
  const HandStack stack = HandStack(kStack, 128)
                              .Put(context + 184 + 8 * 29, 0xf9)
                              .Put(context + 184 + 8 * 30, 0x401111)
                              .Put(context + 432, kStack + 600)
                              .Put(context + 440, 0x404040);
  const Outcome next = StepOnce<Aarch64>({128, 0, RuleKind::kSignal, 0}, stack.bytes(), At(1, kStack, 0, false));
  REQUIRE(next.stepped);
  CHECK(next.at.pc == 0x404040);
  CHECK(next.at.sp == kStack + 600);
  CHECK(next.at.fp == 0xf9);
  CHECK(next.at.lr == 0x401111);
  // Its leaf's return address is in lr once more.
  const Outcome caller = StepOnce<Aarch64>({0, 0, RuleKind::kSp, Rule::kReturnInLr}, stack.bytes(), next.at);
  REQUIRE(caller.stepped);
  CHECK(caller.at.pc == 0x401111);
}

TEST_CASE("aarch64: after a guess sp is not known, so that frame pointers go on", "[step]") {
  HandStack stack(kStack, 32);
  stack.Put(kStack + 16, kStack + 64).Put(kStack + 24, 0x401111).Put(kStack + 64, 0).Put(kStack + 72, 0x402222);
  const Outcome guess = StepOnce<Aarch64>({}, stack.bytes(), At(1, kStack, kStack + 16, true));
  REQUIRE(guess.stepped);
  const Outcome next = StepOnce<Aarch64>({48, -6, RuleKind::kSp, Rule::kRestoresFp}, stack.bytes(), guess.at);
  REQUIRE(next.stepped);
  CHECK(next.at.pc == 0x402222);
  CHECK(next.at.guess);
}

// The offsets of machine.h against the headers of the C library.
#if defined(__x86_64__)
TEST_CASE("the ucontext of this machine is where the C library says", "[step]") {
  CHECK(X86_64::kContext[X86_64::kPc] == offsetof(ucontext_t, uc_mcontext.gregs) + 8 * REG_RIP);
  CHECK(X86_64::kContext[X86_64::kSp] == offsetof(ucontext_t, uc_mcontext.gregs) + 8 * REG_RSP);
  CHECK(X86_64::kContext[X86_64::kFp] == offsetof(ucontext_t, uc_mcontext.gregs) + 8 * REG_RBP);
  constexpr int kRegs[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
                           REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  for (unsigned i = 0; i < std::size(kRegs); ++i) {
    CHECK(X86_64::kContext[i] == offsetof(ucontext_t, uc_mcontext.gregs) + 8 * static_cast<size_t>(kRegs[i]));
  }
}
#elif defined(__aarch64__)
TEST_CASE("the ucontext of this machine is where the C library says", "[step]") {
  CHECK(Aarch64::kContext[0] == offsetof(ucontext_t, uc_mcontext.regs));
  CHECK(Aarch64::kContext[Aarch64::kSp] == offsetof(ucontext_t, uc_mcontext.sp));
  CHECK(Aarch64::kContext[Aarch64::kPc] == offsetof(ucontext_t, uc_mcontext.pc));
}
#endif

TEST_CASE("random rules over random stacks end, and read nothing outside", "[step]") {
  std::mt19937_64 random(17);
  const auto near = [&] { return kStack + random() % 800 - 64; };
  for (int round = 0; round < 10000; ++round) {
    HandStack stack(kStack, 80);
    for (uint64_t at = kStack; at < stack.end(); at += 8) stack.Put(at, random() % 2 == 0 ? near() : random());
    WalkState at = At(random(), random() % 4 == 0 ? random() : near(), near(), true);
    int steps = 0;
    for (; steps < 1000; ++steps) {
      const Rule rule{static_cast<int32_t>(random() % 3 == 0 ? random() : random() % 128),
                      static_cast<int16_t>(random() % 3 == 0 ? random() : random() % 16),
                      static_cast<RuleKind>(random() % 7), static_cast<uint8_t>(random() % 16)};
      StackEnd why{};
      const bool stepped =
          round % 2 == 0 ? Step<X86_64>(rule, stack.bytes(), at, why) : Step<Aarch64>(rule, stack.bytes(), at, why);
      if (!stepped) break;
    }
    REQUIRE(steps < 1000);
  }
}

// The fast path, compared with the one above: if it steps, it steps to the same frame.
template <class Machine>
void CompareFastPath() {
  std::mt19937_64 random(19);
  size_t left = 0, stayed = 0;
  for (int round = 0; round < 100000; ++round) {
    HandStack stack(kStack, 16);
    const auto word = [&] { return random() % 8 == 0 ? 0 : random() >> (random() % 8 == 0 ? 0 : 16); };
    for (uint64_t at = kStack; at < stack.end(); at += 8) stack.Put(at, word());
    const auto near = [&] { return kStack + 8 * (random() % 20) - 16; };
    const Rule rule{static_cast<int32_t>(8 * (random() % 16)), static_cast<int16_t>(random() % 8 - 6),
                    static_cast<RuleKind>(random() % 4), static_cast<uint8_t>(random() % 3)};
    WalkState at = At(random(), near(), near(), random() % 2 == 0);
    at.lr = random();
    if (!FastPathFrame<Machine>::Is(rule)) continue;
    const FastPathFrame<Machine> fast(rule, at);
    const Outcome expected = StepOnce<Machine>(rule, stack.bytes(), at);
    const WalkState before = at;
    const bool leaves = fast.KnowsFp(at) && fast.Advance(stack.bytes(), at);
    if (leaves) REQUIRE(expected.stepped);
    if (leaves) REQUIRE(at.pc - 1 < uint64_t{1} << 48);
    const WalkState& wanted = leaves ? expected.at : before;
    REQUIRE(at.pc == wanted.pc);
    REQUIRE(at.sp == wanted.sp);
    REQUIRE(at.fp == wanted.fp);
    REQUIRE(at.interrupted == wanted.interrupted);
    REQUIRE(at.guess == wanted.guess);
    ++(leaves ? left : stayed);
  }
  CHECK(left > 1000);
  CHECK(stayed > 1000);
}

TEST_CASE("the usual frames are left for the same caller by the short way, or not at all", "[step]") {
  CompareFastPath<X86_64>();
  CompareFastPath<Aarch64>();
}

}  // namespace
}  // namespace perfkit::unwind
