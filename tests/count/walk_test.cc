// A random walk over the public API of counting: any events on any target by any path, under a kernel that refuses
// something, with signals in between, and work whose cost is known. Each number is held against what the kernel tells
// another way: a raw event of the same kind, getrusage, or the work itself.
//
// A walk is made from one number, its seed: tests/support/walk.h.
#include "tests/support/walk.h"

#include <errno.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "tests/count/walk_actor.h"
#include "tests/count/walk_case.h"
#include "tests/count/walk_controls.h"
#include "tests/support/cpus.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/raw_sampling.h"
#include "tests/support/signal_storm.h"
#include "tests/support/single_step.h"
#include "tests/support/work.h"

namespace perfkit::walk {
namespace {

using testing::FakeKernel;

// The set that the handler of signals reads, and where it jumps to.
const CounterSet* volatile g_set = nullptr;
volatile sig_atomic_t g_jumps = 0;
sigjmp_buf g_out_of_read;
// Longest time of a read in a handler, or of one that a jump left. Those of moments: Moment::longest_ns.
std::atomic<uint64_t> g_longest_ns = 0;
void NoteReadTime(uint64_t took_ns) {  // A signal handler may note another time meanwhile.
  uint64_t longest_ns = g_longest_ns;
  while (longest_ns < took_ns && !g_longest_ns.compare_exchange_weak(longest_ns, took_ns)) continue;
}

void ReadInHandler() {
  const CounterSet* const set = g_set;
  const int error = errno;
  if (set != nullptr) {
    Snapshot now;
    const uint64_t begun_ns = testing::NowNs();
    set->Read(now);
    NoteReadTime(testing::NowNs() - begun_ns);
  }
  errno = error;
  if (g_jumps == 0) return;
  g_jumps = 0;
  testing::SignalStorm::Leave(g_out_of_read);
}

// Reads once; if `jumps`, until a signal handler jumps out of a read. Both with one stack address: Walker::Jump.
__attribute__((noinline)) void ReadUntilJump(const CounterSet& set, const volatile bool& jumps) {
  Snapshot scratch;
  if (sigsetjmp(g_out_of_read, 1) != 0) return;
  g_jumps = jumps;
  do {
    set.Read(scratch);
  } while (jumps);
}

// Reads, and leaves the read after that many instructions; 0: does not leave it.
__attribute__((noinline)) void LeaveRead(const CounterSet& set, const volatile uint32_t& instructions) {
  Snapshot scratch;
  testing::LeaveAt(instructions, [&] { set.Read(scratch); });
}

// What the kernel refuses at Open, and how many calls there were.
uint64_t g_no_mapping = 0, g_no_event = 0, g_mappings = 0, g_events = 0;

bool IsRefused(uint64_t mask, uint64_t& calls) { return calls++ < 64 && (mask >> (calls - 1) & 1) != 0; }

void* RefuseMappings(void* address, size_t size, int protection, int flags, int fd, off_t offset) {
  if (fd >= 0 && IsRefused(g_no_mapping, g_mappings)) return errno = EPERM, MAP_FAILED;
  return sys::kLinux.mmap(address, size, protection, flags, fd, offset);
}
int RefuseEvents(const sys::PerfEventAttr* attr, pid_t pid, int cpu, int group, unsigned long flags) {
  if (IsRefused(g_no_event, g_events)) return errno = EACCES, -1;
  return sys::kLinux.perf_event_open(attr, pid, cpu, group, flags);
}

// From the end of one read to the next: however slow a read of a full ring is, the thread makes progress.
constexpr long kBetweenReadsUs = 300;

// The thread runs on one CPU at a time, which it is moved from and to on purpose only: so its migrations are known.
class Walker {
 public:
  explicit Walker(const Walk& walk) : walk_(walk), other_(walk.whose) {
    cpus_.MoveTo(0);
    fake_.below().mmap = RefuseMappings;
    fake_.below().perf_event_open = RefuseEvents;
  }

  std::string Go() {
    std::string wrong;
    {
      std::optional<testing::SignalStorm> signals;
      if (walk_.signals) signals.emplace(ReadInHandler, kBetweenReadsUs);
      absl::StatusOr<CounterSet> set = Open();
      if (set.ok()) wrong = WalkOver(*set);
      g_set = nullptr;
    }
    if (wrong.empty() && !fake_.Leaks().empty()) wrong = "leaks " + fake_.Leaks();
    return wrong;
  }

 private:
  absl::StatusOr<CounterSet> Open() {
    const int other = walk_.whose == Whose::kCpu ? cpus_.cpu(0) : static_cast<int>(other_.id());
    const std::vector<EventSpec> events(walk_.events.begin(), walk_.events.end());
    const Shortage shortage(walk_);
    Fail(fake_, walk_.at_open);
    g_no_mapping = walk_.no_mapping;
    g_no_event = walk_.no_event;
    g_mappings = g_events = 0;
    absl::StatusOr<CounterSet> set = CounterSet::Open(events, TargetOf(walk_, other), walk_.options);
    g_no_mapping = g_no_event = 0;
    fake_.Forgive();
    return set;
  }

  RawTarget Raw() const {
    switch (walk_.whose) {
      case Whose::kOwnPid: return {.own = false, .pid = getpid(), .inherit = true};
      case Whose::kOtherThread: return {.own = false, .pid = other_.id()};
      case Whose::kOtherProcess: return {.own = false, .pid = other_.id(), .inherit = true};
      case Whose::kCpu: return {.own = false, .pid = -1, .cpu = cpus_.cpu(0)};
      default: break;
    }
    return {};
  }

  std::string WalkOver(CounterSet& set) {
    Controls controls(set, Raw());
    testing::SwitchAway();  // perf counts a migration of before only at the next switch
    std::vector<Moment> moments(walk_.steps.size() + 1);
    std::vector<std::optional<Moment>> within(moments.size());
    g_longest_ns = 0;
    g_set = walk_.signals ? &set : nullptr;
    TakeMoment(set, controls, moments[0]);
    for (size_t k = 0; k < walk_.steps.size(); ++k) {
      Do(walk_.steps[k], set, controls);
      if (k + 1 == walk_.steps.size()) Fail(fake_, walk_.at_read);
      moments[k + 1].longest_ns = std::max(moments[k].longest_ns, g_longest_ns.load());
      if (walk_.steps[k].interrupted_at == 0) {
        TakeMoment(set, controls, moments[k + 1]);
      } else {
        TakeInterrupted(set, controls, walk_.steps[k].interrupted_at, moments[k + 1], within[k + 1]);
      }
    }
    fake_.Forgive();
    g_set = nullptr;
    return wrong_.empty() ? JudgeAll(set, controls, moments, within) : wrong_;
  }

  // A handler reads in the middle of the reading, if that has so many instructions; then it moves the thread, or takes
  // its time, and takes the moment `within`.
  void TakeInterrupted(const CounterSet& set, Controls& controls, uint32_t instructions, Moment& moment,
                       std::optional<Moment>& within) {
    uint64_t begun_ns = 0, interrupted_ns = 0;
    const auto interrupt = [&] {
      constexpr uint64_t kTakesNs = 3'000'000;
      const uint64_t interrupted_at_ns = testing::NowNs();
      Snapshot scratch;
      set.Read(scratch);
      if (instructions % 2 == 0) {
        while (testing::NowNs() - interrupted_at_ns < kTakesNs) continue;
      } else if (cpus_.has_both() && walk_.whose != Whose::kCpu && !other_.exists()) {
        Move(1, controls);
      }
      within.emplace().longest_ns = moment.longest_ns;
      TakeMoment(set, controls, *within);
      // The single steps up to here also drew out the read of the clock.
      within->longest_ns = std::max(within->longest_ns, interrupted_at_ns - begun_ns);
      interrupted_ns = testing::NowNs() - interrupted_at_ns;
    };
    TakeMoment(controls, moment, [&](Snapshot& now) {
      begun_ns = testing::NowNs();
      testing::InterruptAt(instructions, interrupt, [&] { set.Read(now); });
      return interrupted_ns;
    });
    if (within) moment.longest_ns = std::max(moment.longest_ns, within->longest_ns);
  }

  // Returns true if nothing was refused, so that what the kernel counts for the walk itself must have numbers, unless a
  // path was asked for that it does not have.
  bool IsPlain() const {
    const bool is_refused = walk_.at_open.error != 0 || walk_.at_read.error != 0 || walk_.no_mapping != 0 ||
                            walk_.no_event != 0 || walk_.free_fds >= 0 || walk_.free_pages >= 0;
    return !is_refused && walk_.whose == Whose::kThisThread;
  }

  // Returns true if event `i` has no number, though the kernel counts it. Events with modifiers may count nothing.
  static bool LacksNumber(const CounterSet& set, const Controls& controls, size_t i, const Moment& from,
                          const Moment& to) {
    const std::optional<Oracle> oracle = controls.oracle(i);
    const bool is_known = oracle && (*oracle == Oracle::kRawEvent || *oracle == Oracle::kClock);
    if (!is_known || set.event(i).name.find(':') != std::string::npos) return false;
    return !set.Difference(from.snapshot, to.snapshot, i).validity.counted();
  }

  // Returns true if event `i` would have the number of another one: clocks run in user space and in the kernel alike,
  // and software events do not tell a hypervisor's work.
  static bool HasNoNumber(const CounterSet& set, size_t i) {
    const std::string& name = set.event(i).name;
    return name == "task-clock:u" || name == "page-faults:h";
  }

  // Migrations have a number, again after a gap in the records of switches, if the set has a base and their ring has
  // room for all of them.
  static bool LacksMigrations(const CounterSet& set, const Controls& controls, size_t i, const Moment& from,
                              const Moment& to) {
    constexpr long kFitIntoRing = 1000;
    if (Switches(to.usage_after) - Switches(from.usage_before) > kFitIntoRing) return false;
    const bool is_known = controls.oracle(i) == Oracle::kMoves && set.event(i).name.find(':') == std::string::npos;
    if (!is_known || !set.fixed_flags(i).counted()) return false;
    return !set.Difference(from.snapshot, to.snapshot, i).validity.counted();
  }

  std::string JudgeAll(const CounterSet& set, const Controls& controls, const std::vector<Moment>& moments,
                       const std::vector<std::optional<Moment>>& within) const {
    for (size_t i = 0; i < set.size(); ++i) {
      if (!set.fixed_flags(i).counted() && set.reason(i).ok())
        return set.event(i).name + " has no number and no reason";
      if (HasNoNumber(set, i) && set.fixed_flags(i).counted()) return set.event(i).name + " has a number";
      if (IsPlain() && !walk_.options.only_path && LacksNumber(set, controls, i, moments.front(), moments.back())) {
        return absl::StrFormat("event %d, %s, has no number: %s", i, set.event(i).name,
                               std::string(set.reason(i).message()));
      }
      for (size_t to = 1; to < moments.size(); ++to) {
        if (IsPlain() && has_base_ && LacksMigrations(set, controls, i, moments[to - 1], moments[to]))
          return absl::StrFormat("event %d, %s, has no number for step %d", i, set.event(i).name, to);
        const auto judge = [&](const Moment& from, const Moment& end, const char* what) {
          const std::string wrong = Judge(set, controls, i, from, end);
          if (wrong.empty()) return wrong;
          return absl::StrFormat("%s, event %d, %s by %s, %s step %d", wrong, i, set.name(i), ReadPathName(set.path(i)),
                                 what, to);
        };
        std::string wrong = judge(moments[to - 1], moments[to], "in");
        if (wrong.empty()) wrong = judge(moments[0], moments[to], "from the first to");
        if (wrong.empty() && within[to]) wrong = judge(moments[to - 1], *within[to], "to the handler in");
        if (wrong.empty() && within[to - 1]) wrong = judge(*within[to - 1], moments[to], "from the handler before");
        if (!wrong.empty()) return wrong;
      }
    }
    return "";
  }

  void Do(const Step& step, CounterSet& set, Controls& controls) {
    if (step.kind == Step::Kind::kMoveSet) return MoveSet(set);
    if (other_.exists()) return other_.Do(step);
    switch (step.kind) {
      case Step::Kind::kMove:
        if (cpus_.has_both() && walk_.whose != Whose::kCpu) Move(step.amount, controls);
        return;
      case Step::Kind::kSwitchOften:  // With a migration in the middle, of which there may be no record.
        if (!cpus_.has_both() || walk_.whose == Whose::kCpu) break;
        testing::SwitchAway(static_cast<int>(step.amount));
        Move(1, controls);
        break;
      case Step::Kind::kCall: controls.calls += step.amount; break;
      case Step::Kind::kFork: return Fork(set);
      case Step::Kind::kSampling: return Sample(step.amount);
      case Step::Kind::kJump: return Jump(set, step);
      default: break;
    }
    Work(step, memory_);
  }

  void Sample(uint32_t amount) {
    if (sampling_) {
      sampling_.reset();
    } else {
      sampling_.emplace(!testing::kSanitized && amount % 4 == 0);
    }
  }

  // A set that was moved from counts nothing.
  void MoveSet(CounterSet& set) {
    g_set = nullptr;
    CounterSet elsewhere = std::move(set);
    Snapshot begin, end;
    set.Read(begin);
    memory_.Touch(0, 1);
    set.Read(end);
    for (size_t i = 0; i < elsewhere.size(); ++i) {
      if (set.Difference(begin, end, i).validity.counted()) wrong_ = "a set that was moved from has counts";
    }
    const size_t size = elsewhere.size();
    set = std::move(elsewhere);
    if (set.size() != size) wrong_ = "a set that was moved to has lost events";
    g_set = walk_.signals ? &set : nullptr;
  }

  // A forked child may read the set, which counts nothing there.
  void Fork(const CounterSet& set) {
    if (testing::kSanitized) return;
    const bool fine = InForkedChild([&] {
      Snapshot begin, end;
      set.Read(begin);
      memory_.Touch(0, 1);
      set.Read(end);
      for (size_t i = 0; i < set.size(); ++i) {
        if (set.Difference(begin, end, i).validity.counted()) return false;
      }
      return true;
    });
    if (!fine) wrong_ = "the child of a fork has counts, or ended";
  }

  // A jump out of the code that writes the base leaves it unusable until a read with the same stack address writes it.
  // If the amount is even, such a read follows.
  void Jump(const CounterSet& set, const Step& step) {
    if (testing::kHandlersUnseen) return;  // ThreadSanitizer delays signals.
    const bool repairs = step.amount % 2 == 0;
    if (step.interrupted_at != 0) {
      testing::SwitchAway();  // The read has to renew the base.
      volatile uint32_t instructions = step.interrupted_at;
      const uint64_t begun_ns = testing::NowNs();
      LeaveRead(set, instructions);
      // The base may come from this read, which the single steps lengthened.
      NoteReadTime(testing::NowNs() - begun_ns);
      instructions = 0;
      if (repairs) LeaveRead(set, instructions);
    } else {
      std::optional<testing::SignalStorm> signals;
      if (!walk_.signals) signals.emplace(ReadInHandler, kBetweenReadsUs);
      volatile bool jumps = true;
      ReadUntilJump(set, jumps);
      jumps = false;
      if (repairs) ReadUntilJump(set, jumps);
    }
    has_base_ = has_base_ && repairs;
  }

  void Move(uint32_t times, Controls& controls) {
    for (; times > 0; --times) {
      at_ ^= 1;
      cpus_.MoveTo(at_);
      ++controls.moves;
    }
  }

  const Walk& walk_;
  Other other_;
  std::string wrong_;
  testing::TwoCpus cpus_;
  int at_ = 0;
  bool has_base_ = true;  // No jump has left the base unusable.
  FakeKernel fake_;
  std::optional<testing::RawSampling> sampling_;
  testing::FreshPages memory_{8};
};

void WalkSetsFor(uint64_t seconds) {
  const auto run = [](const Walk& walk) {
    std::string wrong;
    for (int i = 0; i < 3; ++i) {
      wrong = Walker(walk).Go();
      if (!wrong.starts_with(kMayBeHost)) break;  // A host disturbs one walk, but not three.
    }
    return wrong;
  };
  WalkWithTracefsFor(seconds, "sets", WalkOf, run, [](auto& shrinker) {
    shrinker.Try([](Walk& less) { less.at_open = {}; });
    shrinker.Try([](Walk& less) { less.at_read = {}; });
    shrinker.Try([](Walk& less) { less.signals = false; });
    shrinker.Try([](Walk& less) {
      for (Step& step : less.steps) step.interrupted_at = 0;
    });
    shrinker.Try([](Walk& less) { less.options.user_only = false; });
    shrinker.Try([](Walk& less) { less.options.only_path.reset(); });
    shrinker.Try([](Walk& less) { less.whose = Whose::kThisThread; });
    shrinker.Try([](Walk& less) { less.no_mapping = less.no_event = 0; });
    shrinker.Try([](Walk& less) { less.free_fds = less.free_pages = -1; });
    shrinker.TryWithout(&Walk::steps);
    shrinker.TryWithout(&Walk::events, 1);
  });
}

TEST_CASE("random sets, paths, refusals and work: no number is wrong", "[walk][law]") {
  WalkSetsFor(kUsualSeconds - 1);  // The other second is for zones: tests/count/frame/zone_walk_test.cc.
}

TEST_CASE("random sets, paths, refusals and work, for long", "[walk][.heavy][law]") { WalkSetsFor(kHeavySeconds); }

}  // namespace
}  // namespace perfkit::walk
