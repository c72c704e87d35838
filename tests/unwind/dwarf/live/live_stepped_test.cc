// Live stacks at every instruction of a library, walked by the thread itself in the handler of each trap, against the
// shadow that the library keeps of its calls.
//
//   RunShadowed ── int3 ──> handler sets the trap flag ──> trap after each instruction ──> handler: walk, compare
//
// So every PLT stub is walked through, the linker while it looks up functions, a throw, handlers on both kinds of
// stacks, and all prologues and epilogues.
#include <dlfcn.h>
#include <signal.h>
#include <ucontext.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_format.h"
#include "perfkit/live_unwinder.h"
#include "tests/support/run.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"
#include "tests/support/work.h"
#include "tests/unwind/dwarf/live/live_text.h"
#include "tests/unwind/dwarf/shadowed_builds.h"

namespace perfkit {
namespace {

#if defined(__x86_64__)

using testing::FindLiveText;
using testing::LiveText;

constexpr greg_t kTrapFlag = 1 << 8;
constexpr size_t kMaxFrames = 128;

// As in shadowed_program.cc.
struct LiveShadow {
  volatile uint64_t state, depth;
  volatile uint64_t call_sites[62];
};

// What the handler works on: nothing here allocates.
struct SteppedRun {
  LiveUnwinder unwinder;
  LiveText library, unwinding, linker;
  std::array<StackFrame, kMaxFrames> tail{};  // The callers of RunShadowed, without its own frame.
  size_t tail_frames = 0;

  const LiveShadow* shadow = nullptr;
  std::array<StackFrame, kMaxFrames> frames{};
  UnwoundStack stack;
  size_t looks = 0, equal = 0, while_unwinding = 0, wrong = 0, in_linker = 0;
  // The first one that is wrong.
  std::array<StackFrame, kMaxFrames> wrong_frames{};
  std::array<uint64_t, 62> wrong_shadow{};
  size_t wrong_depth = 0;
  UnwoundStack wrong_stack;

  void Look(const void* context) {
    stack = unwinder.InterruptedStack(context, frames);
    ++looks;
    in_linker += linker.Holds(frames[0].pc);
    if (IsEqual()) {
      ++equal;
    } else if (unwinding.Holds(frames[0].pc) && stack.end == StackEnd::kNoInfo) {
      ++while_unwinding;  // having written over its own frame, before it jumps to a landing pad
    } else if (wrong++ == 0) {
      wrong_frames = frames;
      wrong_stack = stack;
      wrong_depth = shadow->depth;
      for (size_t i = 0; i < wrong_depth; ++i) wrong_shadow[i] = shadow->call_sites[i];
    }
  }

  // Innermost there may be two that the shadow does not have: of the hook, and of a call that it has not noted yet, or
  // not any more.
  bool IsEqual() const {
    if (!stack.complete() || stack.guesses != 0 || stack.frames <= tail_frames) return false;
    const size_t count = stack.frames - tail_frames;
    if (!std::equal(tail.begin(), tail.begin() + tail_frames, frames.begin() + count)) return false;
    // Calls from the library to itself, which is what is instrumented, outermost first.
    size_t own = 0;
    const size_t depth = std::min(uint64_t{shadow->depth}, uint64_t{62});
    size_t expected = 0;
    for (size_t i = count; i-- > 1;) {
      if (!frames[i].is_return_address || !library.Holds(frames[i - 1].code()) || !library.Holds(frames[i].pc))
        continue;
      while (expected < depth && !library.Holds(shadow->call_sites[expected])) ++expected;
      if (expected < depth && shadow->call_sites[expected] != frames[i].pc) return false;
      expected += expected < depth;
      ++own;
    }
    size_t noted = 0;
    for (size_t i = 0; i < depth; ++i) noted += library.Holds(shadow->call_sites[i]);
    return own >= noted && own <= noted + 2;
  }

  std::string Describe() const {
    std::string text(StackEndName(wrong_stack.end));
    for (size_t i = 0; i < wrong_stack.frames; ++i) {
      const StackFrame& frame = wrong_frames[i];
      const uint64_t from = library.Holds(frame.pc) ? library.begin : 0;
      text += absl::StrFormat(" %s%x", frame.is_return_address ? "" : "*", frame.pc - from);
    }
    text += "; shadow:";
    for (size_t i = 0; i < wrong_depth; ++i) text += absl::StrFormat(" %x", wrong_shadow[i] - library.begin);
    return text;
  }
};

SteppedRun* stepped_run = nullptr;

void OnLiveTrap(int, siginfo_t*, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  SteppedRun& run = *stepped_run;
  if (run.shadow == nullptr) run.shadow = reinterpret_cast<const LiveShadow*>(registers[REG_RDI]);
  const bool on = run.shadow->state == 1;
  if (on) run.Look(context);
  registers[REG_EFL] = on ? registers[REG_EFL] | kTrapFlag : registers[REG_EFL] & ~kTrapFlag;
}

// Both signals' handlers and this thread's alternate stack, as they were.
class KeptHandlers {
 public:
  KeptHandlers() {
    struct sigaction trap = {};
    trap.sa_sigaction = OnLiveTrap;
    trap.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &trap, &trap_);
    sigaction(SIGILL, nullptr, &ill_);
    sigaltstack(nullptr, &stack_);
  }
  ~KeptHandlers() {
    sigaction(SIGTRAP, &trap_, nullptr);
    sigaction(SIGILL, &ill_, nullptr);
    sigaltstack(&stack_, nullptr);
  }

 private:
  struct sigaction trap_ = {}, ill_ = {};
  stack_t stack_{};
};

[[gnu::noinline]] void CallStepped(SteppedRun& run, int (*entry)()) {
  std::array<StackFrame, kMaxFrames> here{};
  const UnwoundStack stack = run.unwinder.CurrentStack(here);
  run.tail_frames = stack.frames - 1;  // without this function's own
  std::copy(here.begin() + 1, here.begin() + stack.frames, run.tail.begin());
  entry();
  asm volatile("" ::: "memory");
}

void CheckLive(const std::string& compiler, const std::string& options) {
  const testing::TempFolder folder;
  const std::string library = folder.path() + "/library.so";
  const std::string command = compiler + " -g0 -DAS_LIBRARY -shared -fPIC -finstrument-functions -Wl,-z,lazy " +
                              "-Wl,-Bsymbolic " + options +
                              " " PERFKIT_TEST_DATA "/unwind/dwarf/shadowed_program.cc -o " + library;
  const testing::Run compiled = testing::RunCommand(command);
  INFO(command << "\n" << compiled.output);
  REQUIRE(compiled.exit_code == 0);
  void* const handle = dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL);
  REQUIRE(handle != nullptr);
  const auto entry = reinterpret_cast<int (*)()>(dlsym(handle, "RunShadowed"));
  REQUIRE(entry != nullptr);
  SteppedRun run;
  run.library = FindLiveText(library);
  run.unwinding = FindLiveText("libgcc_s");
  run.linker = FindLiveText("/ld-linux");
  {
    const KeptHandlers handlers;
    stepped_run = &run;
    CallStepped(run, entry);
  }
  dlclose(handle);
  INFO(run.looks << " instructions, " << run.equal << " stacks equal, " << run.while_unwinding
                 << " while libgcc took frames off, " << run.in_linker << " in the linker\n"
                 << run.Describe());
  CHECK(run.wrong == 0);
  CHECK(run.looks > 2000);
  CHECK(run.in_linker > 500);
  CHECK(run.while_unwinding * 20 <= run.looks);
}

TEST_CASE("the live stack is the shadow's at every instruction", "[live][stepped]") {
  if (testing::kSanitized) SKIP_TEST("each trap would run a sanitizer's code, and be taken in it");
  if (testing::RunCommand("g++ --version").exit_code != 0) SKIP_TEST("no g++ here");
  CheckLive("g++", "-O0 -fno-omit-frame-pointer -DWITH_THROW");
}

TEST_CASE("the live stack is the shadow's at every instruction of lld's PLT stubs", "[live][stepped]") {
  if (testing::kSanitized) SKIP_TEST("each trap would run a sanitizer's code, and be taken in it");
  if (testing::RunCommand("g++ --version && ld.lld --version").exit_code != 0) SKIP_TEST("no g++ or no lld here");
  CheckLive("g++", "-O2 -fuse-ld=lld");
  CheckLive("g++", "-O2 -fuse-ld=lld -fcf-protection -Wl,-z,force-ibt");
}

TEST_CASE("the live stack is the shadow's at every instruction, however it is compiled", "[.heavy]") {
  if (testing::kSanitized) SKIP_TEST("each trap would run a sanitizer's code, and be taken in it");
  if (testing::RunCommand("g++ --version").exit_code != 0) SKIP_TEST("no g++ here");
  testing::ForEachShadowedBuild(CheckLive);
}

#endif

}  // namespace
}  // namespace perfkit
