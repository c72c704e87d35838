// Stacks at each instruction of a throw, until a function of the program catches: as samples of a traced program, and
// walked by the thread itself. While libgcc and libstdc++ run, no frame of the program changes, so the program's part
// of a complete stack is the one that the first instruction after the program's had. Towards the end, libgcc writes the
// registers of the catching function over those of its own callers: a stack from there must not be called complete.
#include <signal.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/live_unwinder.h"
#include "perfkit/unwinder.h"
#include "src/base/text.h"
#include "src/proc/maps.h"
#include "tests/support/run.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"
#include "tests/support/work.h"
#include "tests/unwind/dwarf/live/live_text.h"
#include "tests/unwind/dwarf/sampled/hand_sample.h"
#include "tests/unwind/dwarf/stepper.h"

namespace perfkit {
namespace {

#if defined(__x86_64__)

// The stacks of one call of libraries: of a throw. Does not allocate.
class ThrowStacks {
 public:
  void Add(std::span<const StackFrame> frames, const UnwoundStack& stack) {
    ++looks;
    if (!stack.complete()) {
      ++not_whole;
      is_other |= stack.end != StackEnd::kNoInfo;
    } else if (callers_ == 0) {
      callers_ = static_cast<ptrdiff_t>(frames.size()) - 1;
      std::copy(frames.begin() + 1, frames.end(), kept_.begin());
    } else if (std::ssize(frames) <= callers_ ||
               !std::equal(frames.end() - callers_, frames.end(), kept_.begin())) {
      ++wrong;
    }
  }
  // The program runs again. Returns true if this was the throw, not a short call before it.
  bool Pause() {
    if (looks > kMinLooks) return true;
    *this = {};
    return false;
  }
  void Check() const {
    INFO(looks << " instructions, " << not_whole << " of them without a whole stack, " << wrong << " wrong stacks");
    CHECK(looks > kMinLooks);
    CHECK(wrong == 0);
    CHECK(not_whole > 0);
    CHECK_FALSE(is_other);
    CHECK(not_whole * 20 <= looks);
  }

  size_t looks = 0, not_whole = 0, wrong = 0;
  bool is_other = false;  // A stack has ended for another reason.

 private:
  static constexpr size_t kMinLooks = 2000;

  std::array<StackFrame, 128> kept_{};  // The program's part of the first stack, `callers_` frames.
  ptrdiff_t callers_ = 0;
};

constexpr const char* kThrowingProgram = R"(
volatile int sink;
[[gnu::noinline]] void Thrower(int x) { sink = x; throw x; }
[[gnu::noinline]] void Middle(int x) { Thrower(x); sink = 2; }
[[gnu::noinline]] void Outer(void (*middle)(int), int x) { middle(x); sink = 4; }
[[gnu::noinline]] int Catcher(void (*middle)(int)) {
  try { Outer(middle, 1); } catch (int e) { return e; }
  return 0;
}
int main() { Catcher(Middle); asm volatile("int3"); return Catcher(Middle); }
)";

// Returns the executable range of the file.
std::pair<uint64_t, uint64_t> TextOf(pid_t pid, const std::string& path) {
  std::pair<uint64_t, uint64_t> text;
  const absl::StatusOr<std::string> maps = proc::ReadMaps(pid);
  if (!maps.ok()) return text;
  base::ForEachPiece(*maps, '\n', [&](std::string_view line) {
    const std::optional<proc::MapLine> map = proc::ParseMapLine(line);
    if (map && map->executable && map->path == path) text = {map->begin, map->end};
  });
  return text;
}

TEST_CASE("no stack that lacks frames is called complete while a landing pad is installed", "[stepped]") {
  if (testing::RunCommand("g++ --version").exit_code != 0) SKIP_TEST("no g++ here");
  const testing::TempFolder folder;
  for (const char* const options : {"-O2", "-O2 -fno-omit-frame-pointer", "-O0"}) {
    const std::string source = folder.path() + "/throw.cc", program = folder.path() + "/throw";
    folder.Write("/throw.cc", kThrowingProgram);
    const testing::Run compiled =
        testing::RunCommand(absl::StrFormat("g++ -Wl,-z,now %s %s -o %s", options, source, program));
    INFO(options << "\n" << compiled.output);
    REQUIRE(compiled.exit_code == 0);
    testing::Stepper stepper(program);
    Unwinder unwinder;
    REQUIRE((stepper.ok() && unwinder.AddProcess(stepper.pid()).ok()));
    const auto [begin, end] = TextOf(stepper.pid(), program);
    ThrowStacks stacks;
    while (stepper.Step()) {
      const testing::FullRegisters registers = stepper.registers();
      const uint64_t pc = registers.ValueOr0(testing::ThisMachine::kPc);
      if (pc - begin < end - begin) {
        if (stacks.Pause()) break;  // The landing pad.
        continue;
      }
      const testing::HandSample sample(static_cast<uint32_t>(stepper.pid()), registers,
                                       stepper.Read(registers.ValueOr0(testing::ThisMachine::kSp), 16384));
      std::array<StackFrame, 100> frames;
      const UnwoundStack stack = unwinder.Unwind(sample.sample(), frames);
      stacks.Add(std::span(frames).first(stack.frames), stack);
    }
    stacks.Check();
    if (testing::kSanitized) break;  // Each look takes long.
  }
}

// What the handler works on.
struct LiveThrow {
  LiveUnwinder unwinder;
  testing::LiveText program = testing::FindLiveText("");
  ThrowStacks stacks;
  bool is_over = false;
};
LiveThrow* live_throw = nullptr;

constexpr greg_t kTrapEachInstruction = 1 << 8;

void OnThrowTrap(int, siginfo_t*, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  LiveThrow& run = *live_throw;
  const bool in_program = run.program.Holds(static_cast<uint64_t>(registers[REG_RIP]));
  run.is_over |= in_program && run.stacks.Pause();
  if (!in_program && !run.is_over) {
    std::array<StackFrame, 128> frames;
    const UnwoundStack stack = run.unwinder.InterruptedStack(context, frames);
    run.stacks.Add(std::span(frames).first(stack.frames), stack);
  }
  registers[REG_EFL] = run.is_over ? registers[REG_EFL] & ~kTrapEachInstruction
                                   : registers[REG_EFL] | kTrapEachInstruction;
}

[[gnu::noinline]] void ThrowHere(bool stepped) {
  if (stepped) asm volatile("int3");
  throw 1;
}
[[gnu::noinline]] void CallThrow(void (*middle)(bool), bool stepped) {
  middle(stepped);
  asm volatile("");  // No tail call.
}
[[gnu::noinline]] int CatchHere(bool stepped) {
  try {
    CallThrow(ThrowHere, stepped);
  } catch (int value) {
    return value;
  }
  return 0;
}

TEST_CASE("no live stack that lacks frames is called complete while a landing pad is installed", "[live][stepped]") {
  if (testing::kSanitized) SKIP_TEST("each trap would run a sanitizer's code, and be taken in it");
  LiveThrow run;
  live_throw = &run;
  CHECK(CatchHere(false) == 1);  // Binds what is bound at its first call.
  struct sigaction action = {}, before = {};
  action.sa_sigaction = OnThrowTrap;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGTRAP, &action, &before);
  CHECK(CatchHere(true) == 1);
  sigaction(SIGTRAP, &before, nullptr);
  run.stacks.Check();
}

#endif

}  // namespace
}  // namespace perfkit
