// Stacks of programs that are linked with musl, whose C library has no call frame information.
#include <catch2/catch.hpp>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "perfkit/unwinder.h"
#include "tests/support/record_builder.h"
#include "tests/support/run.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"
#include "tests/unwind/dwarf/sampled/sampled_program.h"

namespace perfkit {
namespace {

#if defined(__x86_64__)

// Two threads that work.
constexpr char kMuslProgram[] = R"(
#include <pthread.h>
#include <unistd.h>
__attribute__((noinline)) void spin(unsigned long n) {
  for (volatile unsigned long i = 0; i < n; ++i) {}
}
static void* run(void* unused) {
  for (;;) spin(100000);
  return unused;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, run, 0);
  for (;;) {
    spin(100000);
    alarm(100);
  }
}
)";

TEST_CASE("stacks of programs that are linked with musl reach their roots", "[musl][law]") {
  if (testing::RunCommand("musl-gcc --version").exit_code != 0) SKIP_TEST("no musl-gcc here: install musl-tools");
  const testing::TempFolder folder;
  const std::string source = folder.path() + "/program.c";
  std::ofstream(source) << kMuslProgram;
  for (const std::string how : {"-static", "-Wl,-z,now"}) {
    const std::string program = folder.path() + "/program";
    // With a build-id: a file without one that was written just before it is mapped may be another one than what runs.
    const std::string command = "musl-gcc -O2 -Wl,--build-id " + how + " " + source + " -o " + program;
    const testing::Run built = testing::RunCommand(command);
    INFO(built.output);
    REQUIRE(built.exit_code == 0);
    const testing::SampledProgram sampled({program}, CallStack::UserDump(8 << 10), 1'000'000, 200);
    Unwinder unwinder;
    std::vector<StackFrame> frames(100);
    size_t stacks = 0, complete = 0, deep = 0;
    for (const std::string& text : sampled.records()) {
      const RawRecord record = testing::AsRecord(text);
      unwinder.Add(record, sampled.layout());
      const std::optional<Sample> sample = Sample::Parse(record, sampled.layout());
      if (!sample || sample->user_registers().abi == 0) continue;
      const UnwoundStack stack = unwinder.Unwind(*sample, frames);
      ++stacks;
      complete += stack.complete();
      // spin, main or run, musl's code that has called it, and _start or __clone.
      deep += stack.complete() && stack.frames == 4 && stack.guesses == 1;
    }
    INFO(how << ": " << stacks << " stacks, " << complete << " complete, " << deep << " of four frames");
    CHECK(stacks >= 100);
    CHECK(deep >= stacks * 9 / 10);  // Some begin in musl, or before main.
  }
}

#endif

}  // namespace
}  // namespace perfkit
