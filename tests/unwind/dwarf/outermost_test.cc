// Code without call frame information that sets rbp to 0, as the outermost function of a thread or fiber does, and as
// compilers do with any other register; and code at the entry point of a program.
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"
#include "tests/support/work.h"
#include "tests/symbolize/support.h"
#include "tests/unwind/dwarf/bare_looks.h"
#include "tests/unwind/dwarf/stepper.h"

namespace perfkit {
namespace {

#if defined(__x86_64__)

using testing::BareLooks;
using testing::BareStack;
using testing::HandSample;
using testing::ThisMachine;

extern "C" {
// Calls `function` with rbp 0, on this stack.
void perfkit_zero_inside(void (*function)());
// The same on the stack that ends at `top`.
void perfkit_zero_on_stack(void (*function)(), char* top);
void perfkit_zero_returned();
}
asm(R"(
  .text
  .fill 64, 1, 0xcc
  .p2align 4
perfkit_zero_inside:
  push %rbp
  xor %ebp, %ebp
  call *%rdi
  pop %rbp
  ret
  .fill 64, 1, 0xcc
  .p2align 4
perfkit_zero_on_stack:
  push %rbp
  push %rbx
  mov %rsp, %rbx
  mov %rsi, %rsp
  xor %ebp, %ebp
  call *%rdi
perfkit_zero_returned:
  mov %rbx, %rsp
  pop %rbx
  pop %rbp
  ret
  .fill 64, 1, 0xcc
)");

BareLooks* zero_looks = nullptr;

[[gnu::noinline]] void TakeZero() {
  ucontext_t context;
  if (getcontext(&context) == 0) zero_looks->Take(context);
}

TEST_CASE("code that sets rbp to 0 is the outermost frame if no return address is above it", "[bare]") {
  if (testing::kSanitized) SKIP_TEST("a sanitizer checks copies of stacks, and interposes contexts");
  constexpr size_t kStack = 64 << 10, kAbove = 256, kGuard = 4 << 10;
  void* const room = mmap(nullptr, kStack + kGuard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(room != MAP_FAILED);
  char* const stack = static_cast<char*>(room);
  REQUIRE(mprotect(stack + kStack, kGuard, PROT_NONE) == 0);
  char* const top = stack + kStack - kAbove;
  BareLooks looks;
  zero_looks = &looks;
  looks.stack_end = reinterpret_cast<uint64_t>(stack + kStack);
  const auto look = [&] {
    perfkit_zero_on_stack(TakeZero, top);
    return looks.Same();
  };
  // As the kernel has it: the address to which a handler returns, in code that no call precedes.
  struct {
    void (*handler)(int);
    unsigned long flags;
    uint64_t restorer;
    uint64_t mask;
  } of_kernel{};
  struct sigaction action = {}, before = {};
  action.sa_handler = [](int) {};
  REQUIRE(sigaction(SIGUSR1, &action, &before) == 0);
  REQUIRE(syscall(SYS_rt_sigaction, SIGUSR1, nullptr, &of_kernel, sizeof(of_kernel.mask)) == 0);
  sigaction(SIGUSR1, &before, nullptr);
  const BareStack root = look();
  INFO(root.Describe());
  CHECK(root.stack.complete());
  CHECK(root.stack.guesses == 0);
  REQUIRE(root.frames.size() == 2);
  CHECK(root.frames[1].pc == reinterpret_cast<uint64_t>(perfkit_zero_returned));
  const auto caller = reinterpret_cast<uint64_t>(perfkit_zero_returned);  // After a call.
  for (const uint64_t return_address : {caller, of_kernel.restorer}) {
    for (const size_t at : {size_t{0}, size_t{8}, kAbove - 8}) {
      INFO(at);
      std::memcpy(top + at, &return_address, sizeof(return_address));
      const BareStack inside = look();
      CHECK(inside.stack.end == StackEnd::kNoInfo);
      CHECK(inside.frames == root.frames);
      std::memset(top + at, 0, sizeof(return_address));
    }
  }
  CHECK(look().stack.complete());
  // Too far from the end of the stack.
  perfkit_zero_on_stack(TakeZero, top - 512);
  CHECK(looks.Same().stack.end == StackEnd::kNoInfo);
  munmap(room, kStack + kGuard);
}

TEST_CASE("code that sets rbp to 0 between two others is not the outermost frame", "[bare]") {
  if (testing::kSanitized) SKIP_TEST("a sanitizer checks copies of stacks, and interposes contexts");
  BareLooks looks;
  zero_looks = &looks;
  perfkit_zero_inside(TakeZero);
  const BareStack found = looks.Same();
  INFO(found.Describe());
  CHECK(found.stack.end == StackEnd::kNoInfo);
  CHECK(found.frames.size() == 2);
}

// A copy that took all of its room may end before the return address.
TEST_CASE("code that sets rbp to 0 is not the outermost frame of a stack that was cut", "[bare]") {
  Unwinder unwinder;
  REQUIRE(unwinder.AddProcess(getpid()).ok());
  std::vector<StackFrame> frames(8);
  const auto pc = reinterpret_cast<uint64_t>(perfkit_zero_returned);
  for (const bool cut : {false, true}) {
    const HandSample sample(static_cast<uint32_t>(getpid()), testing::RegistersOf(pc, 0x1000), std::string(256, '\0'),
                            2, cut);
    const UnwoundStack found = unwinder.Unwind(sample.sample(), frames);
    CHECK(found.frames == 1);
    CHECK(found.end == (cut ? StackEnd::kNoInfo : StackEnd::kRoot));
  }
}

// All of it is in the 64 bytes that may be the code of the entry point, and none has information.
constexpr char kSmallProgram[] = R"(
asm(".text; .p2align 6; .globl _start;"
    "_start: xor %ebp, %ebp; and $-16, %rsp; call 1f; mov $60, %eax; xor %edi, %edi; syscall;"
    ".p2align 5; 1: call 2f; nop; ret;"
    ".p2align 4; 2: nop; ret");
)";
constexpr uint64_t kDepthEnds[] = {32, 48, 64};  // Of the code of the outermost function and of its callees.

TEST_CASE("what the code at the entry point calls is not the outermost frame", "[bare][stepped]") {
  const testing::TempFolder folder;
  const std::string path = folder.path() + "/small";
  if (!testing::Compile("c++ -static -nostdlib -nostartfiles", kSmallProgram, path)) {
    SKIP_TEST("there is no compiler here");
  }
  testing::Stepper stepper(path, testing::Stepper::Until::kExec);
  REQUIRE(stepper.ok());
  Unwinder unwinder;
  REQUIRE(unwinder.AddProcess(stepper.pid()).ok());
  const uint64_t entry = stepper.registers().ValueOr0(ThisMachine::kPc);
  std::vector<StackFrame> frames(8);
  size_t deepest = 0;
  do {
    const testing::FullRegisters registers = stepper.registers();
    const uint64_t offset = registers.ValueOr0(ThisMachine::kPc) - entry;
    INFO(offset);
    const HandSample sample(static_cast<uint32_t>(stepper.pid()), registers,
                            stepper.Read(registers.ValueOr0(ThisMachine::kSp), 16384));
    const UnwoundStack stack = unwinder.Unwind(sample.sample(), frames);
    const auto depth = static_cast<size_t>(std::ranges::upper_bound(kDepthEnds, offset) - std::begin(kDepthEnds)) + 1;
    CHECK(stack.complete());
    CHECK(stack.frames == depth);
    CHECK(stack.guesses == depth - 1);
    deepest = std::max(deepest, depth);
  } while (stepper.Step());
  CHECK(deepest == std::size(kDepthEnds));
}

#endif

}  // namespace
}  // namespace perfkit
