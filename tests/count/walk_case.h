// A random walk over the public API of counting, as a value that is made from one number.
#pragma once

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "perfkit/counter.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/single_step.h"
#include "tests/support/work.h"

namespace perfkit::walk {

using testing::Call;

// One occurrence of kProbe and of a tracepoint.
extern "C" inline __attribute__((noinline)) void PerfkitWalkCall() { syscall(SYS_getppid); }
inline constexpr std::string_view kProbe = "uprobe";

inline std::string EventText(std::string_view event) {
  if (event != kProbe) return std::string(event);
  return "uprobe:" + std::filesystem::read_symlink("/proc/self/exe").string() + ":PerfkitWalkCall";
}

inline constexpr std::string_view kEvents[] = {"task-clock",
                                               "cpu-clock",
                                               "page-faults",
                                               "faults",
                                               "minor-faults",
                                               "major-faults",
                                               "context-switches",
                                               "cs",
                                               "cpu-migrations",
                                               "migrations",
                                               "dummy",
                                               "alignment-faults",
                                               "emulation-faults",
                                               "page-faults:u",
                                               "minor-faults:u",
                                               "page-faults:k",
                                               "cs:k",
                                               "cpu-migrations:uk",
                                               "task-clock:H",
                                               "instructions",
                                               "page-faults:h",
                                               "task-clock:u",
                                               "sched:sched_switch",
                                               "cgroup-switches",
                                               "syscalls:sys_enter_getppid",
                                               kProbe,
                                               "context-switches",
                                               "page-faults",
                                               "task-clock",
                                               "bpf-output",
                                               "cpu-migrations"};

// A piece of work between two readings.
struct Step {
  enum class Kind : uint8_t {
    kTouch,
    kSpin,
    kSwitchAway,
    kSwitchOften,  // More often than a ring has room for.
    kMove,         // To the other CPU.
    kMoveSet,      // To another object, and back.
    kCall,
    kFork,
    kJump,
    kSampling,  // By another profiler, which begins or ends.
    kKinds
  };
  Kind kind;
  uint32_t amount;
  // Number of instructions of the reading that ends the step, after which a handler reads the set, too; 0: no handler.
  uint32_t interrupted_at = 0;
};

// What the kernel refuses: the n-th call of a kind, or each (0).
struct Refusal {
  Call call = Call::kAny;
  uint64_t nth = 0;
  int error = 0;  // 0: nothing is refused
};

inline void Fail(testing::FakeKernel& fake, const Refusal& refusal) {
  if (refusal.error == 0) return;
  if (refusal.nth == 0) {
    fake.FailAll(refusal.call, refusal.error);
  } else {
    fake.FailNth(refusal.nth, refusal.error, refusal.call);
  }
}

// Whose events are counted. All but the last three: those of the thread that walks, by different targets.
enum class Whose : uint8_t { kThisThread, kOwnTid, kOwnPid, kAllThreads, kOtherThread, kOtherProcess, kCpu };

struct Walk {
  std::vector<std::string> events;
  Whose whose = Whose::kThisThread;
  CounterOptions options{.require_all = false};
  Refusal at_open, at_read;  // at_read: as the set is read for the last time
  // Bit i: at Open, the i-th mapping or the i-th event is refused, so that its event takes another path.
  uint64_t no_mapping = 0, no_event = 0;
  int free_fds = -1, free_pages = -1;  // At Open: so few are left to this process or user; -1: enough.
  bool signals = false;                // come every now and then, and their handler reads the set too
  std::vector<Step> steps;

  std::string Describe() const {
    std::string text = "{" + absl::StrJoin(events, ", ") + "} on target " + std::to_string(static_cast<int>(whose));
    if (options.only_path) text += absl::StrFormat(", only %s", ReadPathName(*options.only_path));
    absl::StrAppendFormat(&text, ", user_only %d, self_test %d, signals %d", options.user_only, options.self_test,
                          signals);
    absl::StrAppendFormat(&text, ", no mapping %x, no event %x, %d descriptors, %d pages", no_mapping, no_event,
                          free_fds, free_pages);
    for (const Refusal& refusal : {at_open, at_read}) {
      if (refusal.error == 0) continue;
      absl::StrAppendFormat(&text, ", call %s #%d fails with %d", testing::CallName(refusal.call), refusal.nth,
                            refusal.error);
    }
    for (const Step& step : steps)
      absl::StrAppendFormat(&text, ", step %d(%d) at %d", static_cast<int>(step.kind), step.amount,
                            step.interrupted_at);
    return text;
  }
};

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  uint64_t Below(uint64_t n) { return random_() % n; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  template <class List>
  auto OneOf(const List& list) {
    return std::data(list)[Below(std::size(list))];
  }

 private:
  std::mt19937_64 random_;
};

inline Refusal AnyRefusal(Dice& dice) {
  constexpr Call kCalls[] = {Call::kAny,  Call::kPerfEventOpen, Call::kMmap,         Call::kRead,
                             Call::kOpen, Call::kGetrusage,     Call::kClockGettime, Call::kNanosleep};
  constexpr int kErrors[] = {EPERM, EACCES, EMFILE, ENOMEM, EINTR, EIO};
  const Refusal any{dice.OneOf(kCalls), dice.OneIn(3) ? 0 : 1 + dice.Below(40), dice.OneOf(kErrors)};
  // No call is interrupted for ever, and without any clock nothing that waits would end.
  const bool never_ends =
      any.nth == 0 && (any.error == EINTR || any.call == Call::kAny || any.call == Call::kClockGettime);
  return never_ends ? Refusal{} : any;
}

// A number of instructions of a read. A read in place has a few hundred, and twice as many if it renews its base; one
// by the kernel has more.
inline uint32_t AnyInstruction(Dice& dice) { return static_cast<uint32_t>(1 + dice.Below(dice.OneIn(4) ? 3000 : 700)); }

// Moves the thread before, in and after a gap in the records of switches, from which migrations are counted. Nothing is
// refused.
inline Walk GapWalk(Dice& dice) {
  using Kind = Step::Kind;
  Walk walk{.events = {"cpu-migrations", EventText(dice.OneOf(kEvents))}};
  walk.options.only_path = ReadPath::kThreadClock;
  const Kind first = dice.OneIn(2) ? Kind::kJump : Kind::kSpin, last = dice.OneIn(2) ? Kind::kJump : Kind::kSwitchOften;
  for (const Kind kind : {Kind::kMove, first, Kind::kSwitchOften, Kind::kMove, last, Kind::kMove}) {
    walk.steps.push_back({kind, static_cast<uint32_t>(1 + dice.Below(8))});
    if (testing::kHasSingleSteps && dice.OneIn(2)) walk.steps.back().interrupted_at = AnyInstruction(dice);
  }
  return walk;
}

// Interrupts reads that have to renew the base of their clock, or jumps out of them, at one instruction after the
// other. Nothing is refused. A jump that has left the base unusable makes migrations end with the next gap.
inline Walk StepWalk(Dice& dice) {
  using Kind = Step::Kind;
  Walk walk{.events = {"task-clock", "cpu-migrations", EventText(dice.OneOf(kEvents))}};
  walk.options.only_path = ReadPath::kThreadClock;
  const Kind kind = dice.OneIn(2) ? Kind::kJump : dice.OneIn(4) ? Kind::kMove : Kind::kSwitchAway;
  const uint32_t first = AnyInstruction(dice);
  for (uint32_t i = 0; i < 32; ++i) walk.steps.push_back({kind, 2, first + i});
  if (kind == Kind::kJump) walk.steps.insert(walk.steps.end(), {{Kind::kSwitchOften, 1}, {Kind::kMove, 1}});
  return walk;
}

inline Walk WalkOf(uint64_t seed) {
  constexpr Whose kWhose[] = {Whose::kThisThread,   Whose::kThisThread,   Whose::kThisThread, Whose::kThisThread,
                              Whose::kOwnTid,       Whose::kOwnPid,       Whose::kAllThreads, Whose::kOtherThread,
                              Whose::kOtherProcess, Whose::kOtherProcess, Whose::kCpu};
  Dice dice(seed);
  if (dice.OneIn(24)) return GapWalk(dice);
  if (testing::kHasSingleSteps && dice.OneIn(12)) return StepWalk(dice);
  Walk walk;
  const size_t events = 1 + dice.Below(dice.OneIn(4) ? kMaxEvents : 4);
  for (size_t i = 0; i < events; ++i) walk.events.push_back(EventText(dice.OneOf(kEvents)));
  if (!testing::kHandlersUnseen) walk.whose = dice.OneOf(kWhose);  // its runtime has threads of its own
  if (dice.OneIn(3)) walk.options.only_path = static_cast<ReadPath>(dice.Below(5));
  walk.options.user_only = dice.OneIn(4);
  walk.options.self_test = !dice.OneIn(4);
  if (dice.OneIn(3)) walk.at_open = AnyRefusal(dice);
  if (dice.OneIn(6)) walk.at_read = {Call::kRead, 1 + dice.Below(3), dice.OneIn(2) ? EINTR : EIO};
  if (dice.OneIn(4)) walk.no_mapping = dice.Below(256);
  if (dice.OneIn(6)) walk.no_event = dice.Below(256) & dice.Below(256);
  if (dice.OneIn(6)) walk.free_fds = static_cast<int>(dice.Below(20));
  if (dice.OneIn(6)) walk.free_pages = static_cast<int>(dice.Below(12));
  walk.signals = dice.OneIn(4);
  const bool stepped = testing::kHasSingleSteps && dice.OneIn(4);
  for (size_t i = 1 + dice.Below(5); i > 0; --i) {
    auto kind = static_cast<Step::Kind>(dice.Below(static_cast<size_t>(Step::Kind::kKinds)));
    // On a busy machine it takes seconds.
    if (kind == Step::Kind::kSwitchOften && !dice.OneIn(12)) kind = Step::Kind::kSwitchAway;
    walk.steps.push_back({kind, static_cast<uint32_t>(1 + dice.Below(kind == Step::Kind::kSpin ? 20'000 : 8))});
    if (stepped) walk.steps.back().interrupted_at = AnyInstruction(dice);
  }
  return walk;
}

// `other`: the thread or the process that works, or the CPU.
inline Target TargetOf(const Walk& walk, int other) {
  switch (walk.whose) {
    case Whose::kThisThread: return Target::ThisThread();
    case Whose::kOwnTid: return Target::Thread(gettid());
    case Whose::kOwnPid: return Target::Process(getpid());
    case Whose::kAllThreads: return Target::AllThreads();
    case Whose::kOtherThread: return Target::Thread(other);
    case Whose::kOtherProcess: return Target::Process(other);
    case Whose::kCpu: return Target::Cpu(other);
  }
  return Target::ThisThread();
}

}  // namespace perfkit::walk
