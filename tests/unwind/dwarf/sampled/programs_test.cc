// Stacks of installed programs, compared with libdwfl's for the same registers and bytes: never a wrong prefix.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "absl/strings/str_format.h"
#include "tests/support/skip.h"
#include "tests/unwind/dwarf/dwfl_oracle.h"
#include "tests/unwind/dwarf/sampled/hand_sample.h"
#include "tests/unwind/dwarf/sampled/sampled_program.h"

namespace perfkit {
namespace {

constexpr size_t kEnough = 300;

std::string Describe(const std::vector<StackFrame>& frames) {
  std::string text;
  for (const StackFrame& frame : frames) text += absl::StrFormat(" %x", frame.pc);
  return text;
}

struct Comparison {
  size_t samples = 0, same = 0, longer = 0, shorter = 0, complete = 0;
  std::vector<std::string> wrong;
};

Comparison Compare(const testing::SampledProgram& program) {
  testing::DwflOracle oracle(program.pid());
  REQUIRE(oracle.ok());
  Unwinder unwinder;
  Comparison comparison;
  for (const std::string& bytes : program.records()) {
    const RawRecord record = testing::AsRecord(bytes);
    unwinder.Add(record, program.layout());
    // What ran before is no more: libdwfl knows only what is mapped now.
    if (record.type == static_cast<uint32_t>(RecordType::kComm) && (record.misc & kMiscCommExec) != 0) comparison = {};
    const std::optional<Sample> sample = Sample::Parse(record, program.layout());
    if (!sample || sample->user_registers().abi == 0) continue;
    std::vector<StackFrame> ours(512);
    const UnwoundStack stack = unwinder.Unwind(*sample, ours);
    ours.resize(stack.frames);
    const auto registers = unwind::FromSample<unwind::ThisMachine>(sample->user_registers());
    const unwind::StackBytes dump(registers.ValueOr0(unwind::ThisMachine::kSp), sample->user_stack().bytes);
    const std::vector<StackFrame> theirs = oracle.Unwind(registers, dump);
    const size_t both = std::min(ours.size(), theirs.size());
    ++comparison.samples;
    comparison.complete += stack.complete();
    comparison.same += ours == theirs;
    comparison.longer += ours.size() > theirs.size();
    comparison.shorter += ours.size() < theirs.size();
    if (std::equal(ours.begin(), ours.begin() + static_cast<long>(both), theirs.begin())) continue;
    comparison.wrong.push_back(std::string(StackEndName(stack.end)) + Describe(ours) + "; libdwfl" + Describe(theirs));
  }
  return comparison;
}

// `command` runs /usr/bin/`name`.
void CheckProgram(const std::string& name, const std::vector<std::string>& command) {
  if (access(("/usr/bin/" + name).c_str(), X_OK) != 0) {
    WARN("no " << name << " here");
    return;
  }
  const testing::SampledProgram program(command, CallStack::UserDump(32 << 10), 250'000, kEnough);
  const Comparison result = Compare(program);
  std::printf("%s: %zu samples, %zu complete, %zu same as libdwfl's, %zu longer, %zu shorter\n", name.c_str(),
              result.samples, result.complete, result.same, result.longer, result.shorter);
  CHECK(result.samples >= 100);
  CHECK(result.shorter == 0);
  CHECK(result.wrong == std::vector<std::string>());
  CHECK(result.same + result.longer == result.samples);
  CHECK(result.complete * 100 >= result.samples * 90);
}

TEST_CASE("stacks of programs of this system begin as libdwfl's do", "[programs][law]") {
  const std::string python =
      "import re\n"
      "def f(n, g):\n  return g(n) if n == 0 else f(n - 1, g) + 1\n"
      "def g(n):\n  return len(re.sub('a+', 'b', 'aab' * 50)) + len(sorted(range(100), key=lambda x: -x))\n"
      "while True: f(12, g)\n";
  const std::string sql =
      "with recursive c(x) as (select 1 union all select x + 1 from c) "
      "select sum(x * length(printf('%d', x))) from c where x like '%7%';";
  CheckProgram("python3", {"/usr/bin/python3", "-c", python});
  CheckProgram("sqlite3", {"/usr/bin/sqlite3", ":memory:", sql});
  CheckProgram("xz", {"/bin/sh", "-c", "exec xz -6 -c /usr/bin/[a-z]* > /dev/null 2>&1"});
}

}  // namespace
}  // namespace perfkit
