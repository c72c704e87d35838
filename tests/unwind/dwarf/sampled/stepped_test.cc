// Stacks at each instruction of a program, compared with the shadow stack that it keeps: equal, or with a reason why
// not.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/unwinder.h"
#include "src/base/text.h"
#include "src/proc/maps.h"
#include "tests/support/run.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"
#include "tests/support/work.h"
#include "tests/unwind/dwarf/sampled/hand_sample.h"
#include "tests/unwind/dwarf/shadowed_builds.h"
#include "tests/unwind/dwarf/stepper.h"

namespace perfkit {
namespace {

#if defined(__x86_64__)

using testing::HandSample;
using testing::Stepper;
using testing::ThisMachine;

constexpr size_t kStackBytes = 8 << 10;

// The shadow stack of shadowed_program.cc.
struct ShadowCopy {
  uint64_t state = 0, depth = 0;
  uint64_t call_sites[62] = {};
};

// The stack at one instruction.
struct Look {
  UnwoundStack stack;
  std::vector<StackFrame> frames;
  std::vector<uint64_t> expected;  // return addresses of instrumented calls, innermost first
};

struct Text {
  uint64_t begin = 0, end = 0;
  bool Holds(uint64_t pc) const { return pc >= begin && pc < end; }
};

// The code of a file whose path has `part` in it.
Text FindText(pid_t pid, std::string_view part) {
  Text text;
  const absl::StatusOr<std::string> maps = proc::ReadMaps(pid);
  if (!maps.ok()) return text;
  base::ForEachPiece(*maps, '\n', [&](std::string_view line) {
    const std::optional<proc::MapLine> map = proc::ParseMapLine(line);
    if (map && map->executable && map->path.find(part) != std::string_view::npos) text = {map->begin, map->end};
  });
  return text;
}

// All instructions of one run, and the results.
class ShadowRun {
 public:
  explicit ShadowRun(const std::string& program) : stepper_(program), path_(program) {}

  bool Begin() {
    if (!stepper_.ok() || !unwinder_.AddProcess(stepper_.pid()).ok()) return false;
    shadow_at_ = stepper_.registers().ValueOr0(5);  // rdi
    program_ = FindText(stepper_.pid(), path_);
    unwinding_ = FindText(stepper_.pid(), "libgcc_s");
    const Look look = Now();
    tail_.assign(look.frames.begin() + 1, look.frames.end());  // The callers of main.
    return look.stack.complete() && !tail_.empty();
  }

  void Run() {
    while (stepper_.Step()) {
      const Look look = Now();
      if (over_) return;
      ++looks;
      if (IsEqual(look)) {
        ++equal;
      } else if (EndsOnOtherStack(look)) {
        ++to_other_stack;
      } else if (unwinding_.Holds(look.frames[0].pc) && look.stack.end == StackEnd::kNoInfo) {
        ++while_unwinding;
      } else if (++wrong <= 3) {
        UNSCOPED_INFO(Describe(look));
        CHECK(false);
      }
    }
  }

  size_t looks = 0, equal = 0, to_other_stack = 0, while_unwinding = 0, wrong = 0;

 private:
  Look Now() {
    Look look;
    ShadowCopy shadow;
    const std::string bytes = stepper_.Read(shadow_at_, sizeof(shadow));
    if (bytes.size() == sizeof(shadow)) std::memcpy(&shadow, bytes.data(), sizeof(shadow));
    over_ = shadow.state != 1;
    for (uint64_t i = std::min<uint64_t>(shadow.depth, std::size(shadow.call_sites)); i-- > 0;) {
      if (program_.Holds(shadow.call_sites[i])) look.expected.push_back(shadow.call_sites[i]);
    }
    const testing::FullRegisters registers = stepper_.registers();
    const HandSample sample(static_cast<uint32_t>(stepper_.pid()), registers,
                            stepper_.Read(registers.ValueOr0(ThisMachine::kSp), kStackBytes));
    look.frames.resize(100);
    look.stack = unwinder_.Unwind(sample.sample(), look.frames);
    look.frames.resize(look.stack.frames);
    return look;
  }

  // The return addresses of calls from the program to itself, which is what is instrumented, among the first `count`.
  std::vector<uint64_t> OwnCalls(const Look& look, size_t count) const {
    std::vector<uint64_t> own;
    for (size_t i = 1; i < count; ++i) {
      const StackFrame& frame = look.frames[i];
      const bool callee_is_own = program_.Holds(look.frames[i - 1].code());
      if (frame.is_return_address && callee_is_own && program_.Holds(frame.pc)) own.push_back(frame.pc);
    }
    return own;
  }

  // Innermost there may be two that the shadow does not have: of the hook, and of a call that it has not noted yet, or
  // not any more.
  static constexpr size_t kNotNoted = 2;

  bool IsEqual(const Look& look) const {
    if (!look.stack.complete() || look.frames.size() <= tail_.size()) return false;
    const size_t count = look.frames.size() - tail_.size();
    const std::vector<uint64_t> own = OwnCalls(look, count);
    if (own.size() < look.expected.size() || own.size() > look.expected.size() + kNotNoted) return false;
    return std::equal(tail_.begin(), tail_.end(), look.frames.begin() + static_cast<long>(count)) &&
           std::equal(look.expected.rbegin(), look.expected.rend(), own.rbegin());
  }

  // A handler on its alternate stack: the bytes of the one that it interrupted are elsewhere.
  bool EndsOnOtherStack(const Look& look) const {
    if (look.stack.end != StackEnd::kTruncated || look.frames.size() < 2) return false;
    if (look.frames.back().is_return_address || !program_.Holds(look.frames.back().pc)) return false;
    std::vector<uint64_t> own = OwnCalls(look, look.frames.size());
    for (size_t more = 0; more <= kNotNoted; ++more) {
      if (own.size() <= look.expected.size() && std::equal(own.begin(), own.end(), look.expected.begin())) return true;
      if (!own.empty()) own.erase(own.begin());
    }
    return false;
  }

  std::string Describe(const Look& look) const {
    std::string text = absl::StrFormat("instruction %d, %s:", looks, std::string(StackEndName(look.stack.end)));
    for (const StackFrame& frame : look.frames) {
      const uint64_t from = program_.Holds(frame.pc) ? program_.begin : 0;
      text += absl::StrFormat(" %s%x", frame.is_return_address ? "" : "*", frame.pc - from);
    }
    text += "; shadow:";
    for (const uint64_t pc : look.expected) text += absl::StrFormat(" %x", pc - program_.begin);
    return text;
  }

  Stepper stepper_;
  const std::string path_;
  Unwinder unwinder_;
  uint64_t shadow_at_ = 0;
  Text program_, unwinding_;
  std::vector<StackFrame> tail_;
  bool over_ = false;
};

void CheckEveryInstruction(const std::string& compiler, const std::string& options) {
  const testing::TempFolder folder;
  const std::string program = folder.path() + "/program";
  const std::string command = compiler + " -g0 -finstrument-functions -Wl,-z,lazy " + options + " " +
                              PERFKIT_TEST_DATA "/unwind/dwarf/shadowed_program.cc -o " + program;
  const testing::Run compiled = testing::RunCommand(command);
  INFO(command << "\n" << compiled.output);
  REQUIRE(compiled.exit_code == 0);
  ShadowRun run(program);
  REQUIRE(run.Begin());
  run.Run();
  INFO(run.looks << " instructions, " << run.equal << " stacks equal, " << run.to_other_stack << " to another stack, "
                 << run.while_unwinding << " while libgcc took frames off");
  CHECK(run.wrong == 0);
  CHECK(run.to_other_stack > 20);
  CHECK(run.looks > 2000);
  // Having written over its own frame with what it is about to return to, and before it does, libgcc is nowhere.
  CHECK(run.while_unwinding * 20 <= run.looks);
}

TEST_CASE("the stack is the shadow's at every instruction", "[stepped]") {
  if (testing::RunCommand("g++ --version").exit_code != 0) SKIP_TEST("no g++ here");
  CheckEveryInstruction("g++", "-O2 -DWITH_THROW");
}

TEST_CASE("the stack is the shadow's at every instruction of lld's PLT stubs", "[stepped]") {
  if (testing::RunCommand("g++ --version && ld.lld --version").exit_code != 0) SKIP_TEST("no g++ or no lld here");
  CheckEveryInstruction("g++", "-O2 -fuse-ld=lld");
  CheckEveryInstruction("g++", "-O2 -fuse-ld=lld -fcf-protection -Wl,-z,force-ibt");
}

TEST_CASE("the stack is the shadow's at every instruction, however it is compiled", "[.heavy]") {
  if (testing::RunCommand("g++ --version").exit_code != 0) SKIP_TEST("no g++ here");
  testing::ForEachShadowedBuild(CheckEveryInstruction);
}

#endif

}  // namespace
}  // namespace perfkit
