// Stacks through code without call frame information, sampled and live: hand-written leaves, fibers of
// makecontext, the dynamic linker from its first instruction on.
#include <elf.h>
#include <signal.h>
#include <sys/auxv.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "perfkit/live_unwinder.h"
#include "perfkit/unwinder.h"
#include "src/unwind/dwarf/live/live_tables.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"
#include "tests/unwind/dwarf/bare_looks.h"
#include "tests/unwind/dwarf/sampled/hand_sample.h"
#include "tests/unwind/dwarf/stepper.h"

namespace perfkit {
namespace {

#if defined(__x86_64__)

using testing::BareLooks;
using testing::BareStack;
using testing::HandSample;
using testing::RegistersOf;
using testing::ThisMachine;

// The fill keeps the code away from the padding of functions with information.
extern "C" {
void perfkit_bare_leaf();
void perfkit_bare_leaf_end();
void perfkit_bare_framed();
void perfkit_bare_framed_end();
void perfkit_with_info();
void perfkit_bare_thread_returned();
void perfkit_bare_clone_returned();
void perfkit_bare_clone_too_returned();
void perfkit_bare_restore();
void perfkit_bare_called();
}
// As musl: start of pthread_create.c, __clone and __restore_rt.
asm(R"(
  .text
  .fill 64, 1, 0xcc
  .p2align 4
perfkit_bare_leaf:
  nop
  int3
  nop
  ret
perfkit_bare_leaf_end:
  .fill 64, 1, 0xcc
  .p2align 4
perfkit_bare_framed:
  push %rbp
  mov %rsp, %rbp
  lea 1f(%rip), %rax
  push %rax
  int3
  nop
  leave
  ret
  call perfkit_bare_thread
1:
  nop
perfkit_bare_framed_end:
  .fill 64, 1, 0xcc
  .p2align 4
perfkit_bare_thread:
  push %rbp
  push %rbx
  sub $8, %rsp
  call *(%rbx)
perfkit_bare_thread_returned:
  mov %rax, %rdi
  call perfkit_bare_leaf
perfkit_bare_called:
  nop
  .fill 64, 1, 0xcc
  .p2align 4
perfkit_bare_clone:
  pop %rdi
  call *%r9
perfkit_bare_clone_returned:
  mov %eax, %edi
  xor %eax, %eax
  mov $60, %al
  syscall
  hlt
  .fill 64, 1, 0xcc
  .p2align 4
  call *%r9
perfkit_bare_clone_too_returned:
  mov %eax, %edi
  mov $60, %eax
  syscall
  .fill 64, 1, 0xcc
  .p2align 4
perfkit_bare_restore:
  mov $15, %rax
  syscall
  .fill 64, 1, 0xcc
  .p2align 4
perfkit_with_info:
  .cfi_startproc
  nop
  ret
  .cfi_endproc
  .fill 64, 1, 0xcc
)");

BareLooks* bare_looks = nullptr;

template <class Begin>
bool IsIn(uint64_t pc, Begin begin, void (*end)()) {
  return pc >= reinterpret_cast<uint64_t>(begin) && pc <= reinterpret_cast<uint64_t>(end);
}

[[gnu::noinline]] void TakeHere() {
  ucontext_t context;
  if (getcontext(&context) == 0) bare_looks->Take(context);
}

// Calls a function with an int3 in it, and returns the stack at its next instruction.
[[gnu::noinline]] BareStack AtInt3(BareLooks& looks, void (*function)()) {
  bare_looks = &looks;
  struct sigaction action = {}, before = {};
  action.sa_sigaction = [](int, siginfo_t*, void* context) { bare_looks->Take(*static_cast<ucontext_t*>(context)); };
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGTRAP, &action, &before);
  function();
  sigaction(SIGTRAP, &before, nullptr);
  return looks.Same();
}

// Returns the stack of the same depth, of functions that have information.
[[gnu::noinline]] BareStack WithInfo(BareLooks& looks) {
  bare_looks = &looks;
  TakeHere();
  return looks.Same();
}

TEST_CASE("a function without information is left by a guess that is right", "[bare]") {
  if (testing::kSanitized) SKIP_TEST("a sanitizer checks copies of stacks, and interposes contexts");
  BareLooks looks;
  const BareStack here = WithInfo(looks);
  // By the word at sp; by the frame pointer, although the word at sp is the return address of another function's call.
  for (const bool framed : {false, true}) {
    const BareStack found = AtInt3(looks, framed ? perfkit_bare_framed : perfkit_bare_leaf);
    INFO(found.Describe());
    REQUIRE(found.frames.size() == here.frames.size());
    CHECK(framed == IsIn(found.frames[0].pc, perfkit_bare_framed, perfkit_bare_framed_end));
    CHECK(framed != IsIn(found.frames[0].pc, perfkit_bare_leaf, perfkit_bare_leaf_end));
    CHECK((found.frames[1].is_guess && found.frames[1].is_return_address));
    CHECK(found.stack.guesses == 1);
    CHECK(found.stack.complete());
    CHECK(std::equal(here.frames.begin() + 3, here.frames.end(), found.frames.begin() + 3));
  }
}

ucontext_t fiber_context, caller_context;

void RunFiber() {
  TakeHere();
  swapcontext(&fiber_context, &caller_context);
}

[[gnu::noinline]] bool MakeFiber(std::vector<char>& stack, ucontext_t* next) {
  if (getcontext(&fiber_context) != 0) return false;
  fiber_context.uc_stack = {stack.data(), 0, stack.size()};
  fiber_context.uc_link = next;
  makecontext(&fiber_context, RunFiber, 0);
  return true;
}
[[gnu::noinline]] bool SwitchToFiber() { return swapcontext(&caller_context, &fiber_context) == 0; }

TEST_CASE("the stack of a fiber of makecontext has a root", "[bare]") {
  if (testing::kSanitized) SKIP_TEST("a sanitizer checks copies of stacks, and interposes contexts");
  BareLooks looks;
  bare_looks = &looks;
  std::vector<char> stack(64 << 10);
  for (ucontext_t* const next : {static_cast<ucontext_t*>(nullptr), &caller_context}) {
    REQUIRE(MakeFiber(stack, next));
    looks.stack_end = reinterpret_cast<uint64_t>(stack.data() + stack.size());
    REQUIRE(SwitchToFiber());
    const BareStack found = looks.Same();
    INFO(found.Describe());
    CHECK(found.stack.complete());
    CHECK(found.stack.guesses == 0);
    CHECK(found.frames.size() == 3);
  }
}

TEST_CASE("a program has a whole stack from the dynamic linker's first instruction on", "[bare][stepped]") {
  testing::Stepper stepper("/bin/true", testing::Stepper::Until::kExec);
  REQUIRE(stepper.ok());
  Unwinder unwinder;
  REQUIRE(unwinder.AddProcess(stepper.pid()).ok());
  const uint64_t entry = stepper.registers().ValueOr0(ThisMachine::kPc);
  size_t wrong = 0, deepest = 0;
  for (int i = 0; i < 3000 && wrong == 0; ++i, stepper.Step()) {
    const testing::FullRegisters registers = stepper.registers();
    const HandSample sample(static_cast<uint32_t>(stepper.pid()), registers,
                            stepper.Read(registers.ValueOr0(ThisMachine::kSp), 16384));
    BareStack look;
    look.frames.resize(50);
    look.stack = unwinder.Unwind(sample.sample(), look.frames);
    look.frames.resize(look.stack.frames);
    const bool whole = look.stack.complete() && look.frames.back().pc - entry <= unwind::kMaxEntryCode;
    INFO("instruction " << i << ": " << look.Describe());
    CHECK(whole);
    wrong += !whole;
    deepest = std::max(deepest, look.frames.size());
  }
  CHECK(deepest >= 3);
}

TEST_CASE("a return address is planted if a function begins there, and no call is before it", "[bare]") {
  unwind::LiveTables tables;
  REQUIRE(tables.Maintain().ok());
  std::vector<uint64_t> words(100, 1);
  std::vector<StackFrame> frames(10);
  const auto is_root = [&](uint64_t pc, bool is_return) {
    const auto sp = reinterpret_cast<uint64_t>(words.data());
    testing::FullRegisters registers = RegistersOf(pc, sp, sp);
    registers.interrupted = !is_return;
    return tables.WalkFrom(registers, false, frames).complete();
  };
  const auto begin = reinterpret_cast<uint64_t>(&perfkit_with_info);
  CHECK(is_root(begin, true));
  CHECK_FALSE(is_root(begin + 1, true));
  // In this order: the rule of the address that is looked up for `begin` must not come from the cache.
  CHECK_FALSE(is_root(begin - 1, false));
  CHECK(is_root(begin, true));
  CHECK_FALSE(is_root(begin, false));  // Last: caches the rule of the address that is looked up for the one above.
}

TEST_CASE("a sampled stack ends at a planted return address, not at an interrupted or guessed one", "[bare]") {
  constexpr uint64_t kSp = 0x7000;
  const auto begin = reinterpret_cast<uint64_t>(&perfkit_with_info);
  Unwinder unwinder;
  REQUIRE(unwinder.AddProcess(getpid()).ok());
  std::vector<StackFrame> frames(10);
  // `words` are the stack; the frame pointer points to the second one.
  const auto unwind = [&](uint64_t pc, const std::vector<uint64_t>& words) {
    const std::string stack(reinterpret_cast<const char*>(words.data()), words.size() * sizeof(uint64_t));
    const HandSample sample(static_cast<uint32_t>(getpid()), RegistersOf(pc, kSp, kSp + sizeof(uint64_t)), stack);
    return unwinder.Unwind(sample.sample(), frames);
  };
  // Twice, because rules are cached.
  for (int i = 0; i < 2; ++i) {
    CHECK(unwind(begin, {begin, 1, 1, 1}).complete());
    const UnwoundStack guessed = unwind(reinterpret_cast<uint64_t>(&perfkit_bare_leaf) + 1, {1, 1, begin, 1});
    REQUIRE(guessed.frames >= 2);
    CHECK((frames[1].pc == begin && frames[1].is_guess));
    CHECK_FALSE(guessed.complete());
    CHECK_FALSE(unwind(begin - 1, {1, 1, 1, 1}).complete());
  }
}

TEST_CASE("the dynamic linker's entry point is a root of live stacks", "[bare]") {
  const uint64_t base = getauxval(AT_BASE);
  if (base == 0) SKIP_TEST("this program has no dynamic linker");
  Elf64_Ehdr header;
  std::memcpy(&header, reinterpret_cast<const void*>(base), sizeof(header));
  unwind::LiveTables tables;
  REQUIRE(tables.Maintain().ok());
  std::vector<uint64_t> words(100, 1);  // As if argc: no pc, and no 0 that ends stacks.
  for (const uint64_t offset : {0, 3, 8}) {
    testing::FullRegisters registers =
        RegistersOf(base + header.e_entry + offset, reinterpret_cast<uint64_t>(words.data()));
    registers.interrupted = offset != 8;
    std::vector<StackFrame> frames(10);
    const UnwoundStack found = tables.WalkFrom(registers, false, frames);
    INFO(offset);
    CHECK(found.complete());
    CHECK(found.frames == 1);
  }
}

constexpr uint64_t kBareSp = 0x7000;

// Returns the stack of code that was interrupted at `pc`, with `words` on its stack. As a live one it is the same.
BareStack UnwindWords(uint64_t pc, const std::vector<uint64_t>& words) {
  Unwinder unwinder;
  REQUIRE(unwinder.AddProcess(getpid()).ok());
  const std::string stack(reinterpret_cast<const char*>(words.data()), words.size() * sizeof(uint64_t));
  const HandSample sample(static_cast<uint32_t>(getpid()), RegistersOf(pc, kBareSp), stack);
  BareStack found;
  found.frames.resize(10);
  found.stack = unwinder.Unwind(sample.sample(), found.frames);
  found.frames.resize(found.stack.frames);

  unwind::LiveTables tables;
  REQUIRE(tables.Maintain().ok());
  std::vector<uint64_t> memory = words;
  memory.resize(words.size() + 8, 1);
  std::vector<StackFrame> frames(10);
  const UnwoundStack live =
      tables.WalkFrom(RegistersOf(pc, reinterpret_cast<uint64_t>(memory.data())), false, frames);
  frames.resize(live.frames);
  CHECK(live.complete() == found.stack.complete());
  if (live.complete()) CHECK(frames == found.frames);
  return found;
}

TEST_CASE("a function without information that was called by a thread's first code is left for the root", "[bare]") {
  const auto address = [](void (*label)()) { return reinterpret_cast<uint64_t>(label); };
  const uint64_t leaf = address(perfkit_bare_leaf), started = address(perfkit_bare_thread_returned);
  for (const uint64_t root : {address(perfkit_bare_clone_returned), address(perfkit_bare_clone_too_returned)}) {
    const BareStack found = UnwindWords(leaf, {started, 1, 2, 3, root, 4, 5, 6});
    INFO(found.Describe());
    CHECK(found.stack.complete());
    REQUIRE(found.frames.size() == 3);
    CHECK((found.frames[1].pc == started && found.frames[2].pc == root));
    CHECK((found.frames[2].is_guess && found.frames[2].is_return_address));
    // No call is passed over, and no frame is that large.
    const uint64_t call = address(perfkit_bare_called);
    CHECK_FALSE(UnwindWords(leaf, {started, 1, call, 3, root, 4, 5, 6}).stack.complete());
    std::vector<uint64_t> far(18, 1);
    far[0] = started, far[16] = root;
    CHECK(UnwindWords(leaf, far).stack.complete());
    std::swap(far[16], far[17]);
    CHECK_FALSE(UnwindWords(leaf, far).stack.complete());
    CHECK_FALSE(UnwindWords(leaf, {started, 1, 2, 3, root + 1, 4, 5, 6}).stack.complete());
  }
}

TEST_CASE("zeros that a guessed frame pointer leads to are not the end of a stack", "[bare]") {
  const auto leaf = reinterpret_cast<uint64_t>(&perfkit_bare_leaf);
  Unwinder unwinder;
  REQUIRE(unwinder.AddProcess(getpid()).ok());
  const uint64_t words[] = {1, 0, 0, 1};
  const HandSample sample(static_cast<uint32_t>(getpid()), RegistersOf(leaf, kBareSp, kBareSp + sizeof(uint64_t)),
                          std::string(reinterpret_cast<const char*>(words), sizeof(words)));
  std::vector<StackFrame> frames(10);
  const UnwoundStack found = unwinder.Unwind(sample.sample(), frames);
  CHECK((found.frames == 1 && found.end == StackEnd::kNoInfo));
}

TEST_CASE("a signal's frame is recognised by the code that ends it", "[bare]") {
  constexpr size_t kContextWords = sizeof(ucontext_t) / sizeof(uint64_t);
  std::vector<uint64_t> words(1 + kContextWords + 1, 1);
  words[0] = reinterpret_cast<uint64_t>(&perfkit_bare_restore);
  const auto set = [&](int number, uint64_t value) {
    words[1 + (offsetof(ucontext_t, uc_mcontext.gregs) / sizeof(uint64_t)) + static_cast<size_t>(number)] = value;
  };
  const auto inner = reinterpret_cast<uint64_t>(&perfkit_bare_clone_returned);
  set(REG_RIP, inner);
  set(REG_RSP, kBareSp + 8 * (1 + kContextWords));
  set(REG_RBP, 0);
  Unwinder unwinder;
  REQUIRE(unwinder.AddProcess(getpid()).ok());
  std::vector<StackFrame> frames(10);
  const auto unwind = [&](uint64_t pc, size_t skip) {
    const std::string stack(reinterpret_cast<const char*>(words.data() + skip), (words.size() - skip) * 8);
    const HandSample sample(static_cast<uint32_t>(getpid()), RegistersOf(pc, kBareSp + 8 * skip), stack);
    return unwinder.Unwind(sample.sample(), frames);
  };
  // From the handler, which has information, and interrupted before the system call.
  const UnwoundStack handler = unwind(reinterpret_cast<uint64_t>(&perfkit_with_info), 0);
  REQUIRE(handler.frames >= 3);
  CHECK((frames[1].pc == words[0] && frames[2].pc == inner && !frames[2].is_return_address));
  const UnwoundStack ending = unwind(words[0], 1);
  CHECK((ending.frames >= 2 && frames[1].pc == inner && !frames[1].is_return_address));
}

#endif

}  // namespace
}  // namespace perfkit
