// Checks each instruction that a walk executes, from its first call on: none is in the allocator, the linker or the C
// library, except for the memset and memcpy that a compiler calls for structs. That proves more than an interposed
// malloc, or a check of what is linked.
//
//   Lazy() is stepped through ── in the handler of each trap: int3, Walk, int3 ── and the walk is stepped through, too
#include <dlfcn.h>
#include <signal.h>
#include <ucontext.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <thread>

#include "perfkit/live_unwinder.h"
#include "tests/support/run.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"
#include "tests/support/work.h"
#include "tests/unwind/dwarf/live/live_text.h"

namespace perfkit {
namespace {

#if defined(__x86_64__)

constexpr greg_t kStepping = 1 << 8;

struct PureRun {
  LiveUnwinder unwinder;
  testing::LiveText own = testing::FindLiveText(""), linker = testing::FindLiveText("/ld-linux");
  std::array<StackFrame, 64> frames{};
  bool over = false;
  volatile bool walking = false, walk_over = false;
  size_t traps = 0, walks = 0, in_linker = 0, complete = 0, instructions = 0, longest = 0, this_walk = 0;
  size_t foreign = 0;
  uint64_t first_foreign = 0;

  // The C library has several of each, one for each kind of processor, and keeps those of one kind together.
  static bool IsOfStructs(uint64_t pc) {
    for (const void* const function : {reinterpret_cast<void*>(&std::memset), reinterpret_cast<void*>(&std::memcpy)}) {
      const auto at = reinterpret_cast<uint64_t>(function);
      if (pc - (at - 256) < 1024) return true;
    }
    return false;
  }

  // A walk's instruction.
  bool OnStep(uint64_t pc) {
    if (walk_over) return false;
    ++this_walk;
    if (!own.Holds(pc) && !IsOfStructs(pc) && foreign++ == 0) first_foreign = pc;
    return true;
  }

  void WalkStepped(const void* context, uint64_t pc) {
    this_walk = 0;
    walk_over = false;
    walking = true;
    asm volatile("int3" ::: "memory");
    const UnwoundStack stack = unwinder.InterruptedStack(context, frames);
    walk_over = true;
    asm volatile("int3" ::: "memory");
    walking = false;
    ++walks;
    complete += stack.complete();
    in_linker += linker.Holds(pc);
    instructions += this_walk;
    longest = std::max(longest, this_walk);
  }
};

PureRun* pure_run = nullptr;

void OnPureTrap(int, siginfo_t*, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  PureRun& run = *pure_run;
  const auto pc = static_cast<uint64_t>(registers[REG_RIP]);
  bool on = !run.over;
  if (run.walking) {
    on = run.OnStep(pc);
  } else if (on && run.traps++ % 450 == 0) {
    run.WalkStepped(context, pc);
  }
  registers[REG_EFL] = on ? registers[REG_EFL] | kStepping : registers[REG_EFL] & ~kStepping;
}

TEST_CASE("a walk executes its own code only", "[live][pure]") {
  if (testing::kSanitized) SKIP_TEST("instrumented code calls the sanitizer");
#if !defined(__OPTIMIZE__)
  SKIP_TEST("without optimisation the compiler calls memcpy for eight bytes");
#endif
  const testing::TempFolder folder;
  folder.Write("/lazy.c",
               "#include <string.h>\nint Lazy(const char* a) { return strcasecmp(a, \"b\") + strlen(a); }\n");
  const std::string library = folder.path() + "/lazy.so";
  const std::string command =
      "cc -O1 -fno-builtin -shared -fPIC -Wl,-z,lazy " + folder.path() + "/lazy.c -o " + library;
  if (testing::RunCommand(command).exit_code != 0) SKIP_TEST("there is no compiler here");
  void* const handle = dlopen(library.c_str(), RTLD_LAZY);
  REQUIRE(handle != nullptr);
  const auto lazy = reinterpret_cast<int (*)(const char*)>(dlsym(handle, "Lazy"));
  REQUIRE(lazy != nullptr);
  PureRun run;
  pure_run = &run;
  struct sigaction action = {}, before = {};
  action.sa_sigaction = OnPureTrap;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGTRAP, &action, &before);
  int sum = 0;
  // On a thread of its own the stacks are short, and each step of a walk is a signal.
  std::thread([&] {
    asm volatile("int3" ::: "memory");
    sum = lazy("B");
    run.over = true;
    asm volatile("int3" ::: "memory");
  }).join();
  sigaction(SIGTRAP, &before, nullptr);
  dlclose(handle);
  CHECK(sum == 1);
  INFO(run.walks << " walks, " << run.instructions / run.walks << " instructions each, at most " << run.longest
                 << "; the first foreign one is at " << std::hex << run.first_foreign);
  CHECK(run.foreign == 0);
  CHECK(run.walks >= 5);
  CHECK(run.complete == run.walks);
  CHECK(run.in_linker >= 3);
  CHECK(run.longest < 100'000);
}

#endif

}  // namespace
}  // namespace perfkit
