// A random walk over the public API of counting: any events on any target by any path, under a kernel that refuses
// something, with signals in between, and work whose cost is known. Each number is held against what the kernel tells
// another way: a raw event of the same kind, getrusage, or the work itself.
//
// A walk is made from one number, its seed: tests/support/walk.h.
#include "tests/support/walk.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "tests/count/walk_case.h"
#include "tests/count/walk_controls.h"
#include "tests/support/cpus.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/work.h"

namespace perfkit::walk {
namespace {

using testing::FakeKernel;

// The set that the handler of signals reads.
const CounterSet* volatile g_set = nullptr;

void ReadInHandler(int) {
  const CounterSet* const set = g_set;
  if (set == nullptr) return;
  const int error = errno;
  Snapshot now;
  set->Read(now);
  errno = error;
}

// Signals every 0.3 ms as long as it lives.
class Signals {
 public:
  explicit Signals(bool wanted) : wanted_(wanted) {
    if (!wanted_) return;
    struct sigaction action {};
    action.sa_handler = ReadInHandler;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, &old_);
    Every(300);
  }
  ~Signals() {
    if (!wanted_) return;
    Every(0);
    g_set = nullptr;
    sigaction(SIGALRM, &old_, nullptr);
  }

 private:
  static void Every(long us) {
    const itimerval timer{{0, us}, {0, us}};
    setitimer(ITIMER_REAL, &timer, nullptr);
  }

  bool wanted_;
  struct sigaction old_ {};
};

void Fail(FakeKernel& fake, const Refusal& refusal) {
  if (refusal.error == 0) return;
  if (refusal.nth == 0) {
    fake.FailAll(refusal.call, refusal.error);
  } else {
    fake.FailNth(refusal.nth, refusal.error, refusal.call);
  }
}

// The thread runs on one CPU at a time, which it is moved from and to on purpose only: so its migrations are known.
class Walker {
 public:
  explicit Walker(const Walk& walk) : walk_(walk) { cpus_.MoveTo(0); }

  std::string Go() {
    std::string wrong;
    {
      const Signals signals(walk_.signals);
      Fail(fake_, walk_.at_open);
      absl::StatusOr<CounterSet> set = CounterSet::Open(
          std::vector<EventSpec>(walk_.events.begin(), walk_.events.end()), TargetOf(walk_), walk_.options);
      fake_.Forgive();
      if (set.ok()) wrong = WalkOver(*set);
      g_set = nullptr;
    }
    if (wrong.empty() && !fake_.Leaks().empty()) wrong = "leaks " + fake_.Leaks();
    return wrong;
  }

 private:
  std::string WalkOver(const CounterSet& set) {
    Controls controls(set);
    testing::SwitchAway();  // the kernel may owe its own event a migration of before, which it pays at a switch
    std::vector<Moment> moments(walk_.steps.size() + 1);
    g_set = walk_.signals ? &set : nullptr;
    TakeMoment(set, controls, moments[0]);
    for (size_t k = 0; k < walk_.steps.size(); ++k) {
      Do(walk_.steps[k], controls);
      if (k + 1 == walk_.steps.size()) Fail(fake_, walk_.at_read);
      TakeMoment(set, controls, moments[k + 1]);
    }
    fake_.Forgive();
    g_set = nullptr;
    return JudgeAll(set, controls, moments);
  }

  static std::string JudgeAll(const CounterSet& set, const Controls& controls, const std::vector<Moment>& moments) {
    for (size_t i = 0; i < set.size(); ++i) {
      if (!set.fixed_flags(i).counted() && set.reason(i).ok())
        return set.event(i).name + " has no number and no reason";
      for (size_t to = 1; to < moments.size(); ++to) {
        for (const size_t from : {to - 1, size_t{0}}) {
          const std::string wrong = Judge(set, controls, i, moments[from], moments[to]);
          if (wrong.empty()) continue;
          return absl::StrFormat("event %d, %s by %s, from step %d to %d: %s", i, set.name(i),
                                 ReadPathName(set.path(i)), from, to, wrong);
        }
      }
    }
    return "";
  }

  void Do(const Step& step, Controls& controls) {
    switch (step.kind) {
      case Step::Kind::kTouch:
        memory_.Forget();
        memory_.Touch(0, step.amount);
        break;
      case Step::Kind::kSpin: testing::Spin(step.amount); break;
      case Step::Kind::kSwitchAway: testing::SwitchAway(static_cast<int>(step.amount)); break;
      case Step::Kind::kMove:
        if (cpus_.has_both()) Move(step.amount, controls);
        break;
      case Step::Kind::kGetppid:
        for (uint32_t n = 0; n < step.amount; ++n) syscall(SYS_getppid);
        controls.calls += step.amount;
        break;
    }
  }

  void Move(uint32_t times, Controls& controls) {
    for (; times > 0; --times) {
      at_ ^= 1;
      cpus_.MoveTo(at_);
      ++controls.moves;
    }
  }

  const Walk& walk_;
  testing::TwoCpus cpus_;
  int at_ = 0;
  FakeKernel fake_;
  testing::FreshPages memory_{8};
};

void WalkSetsFor(uint64_t seconds) {
  const auto run = [](const Walk& walk) { return Walker(walk).Go(); };
  WalkFor(seconds, "sets", WalkOf, run, [](auto& shrinker) {
    shrinker.Try([](Walk& less) { less.at_open = {}; });
    shrinker.Try([](Walk& less) { less.at_read = {}; });
    shrinker.Try([](Walk& less) { less.signals = false; });
    shrinker.Try([](Walk& less) { less.options.user_only = false; });
    shrinker.Try([](Walk& less) { less.options.only_path.reset(); });
    shrinker.Try([](Walk& less) { less.target = Target::Kind::kThisThread; });
    shrinker.TryWithout(&Walk::steps);
    shrinker.TryWithout(&Walk::events, 1);
  });
}

TEST_CASE("random sets, paths, refusals and work: no number is wrong", "[walk][law]") { WalkSetsFor(kUsualSeconds); }

TEST_CASE("random sets, paths, refusals and work, for long", "[walk][.heavy][law]") { WalkSetsFor(kHeavySeconds); }

}  // namespace
}  // namespace perfkit::walk
