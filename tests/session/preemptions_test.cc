// Who ran in place of a preempted thread, by switches that are made by hand.
#include "src/session/preemptions.h"

#include <catch2/catch.hpp>

namespace perfkit::session {
namespace {

constexpr uint32_t kOurPid = 7, kOurs = 8, kOther = 9;

struct Task {
  uint32_t pid = 0, tid = 0;
  const char* name = "";
};
constexpr Task kIdle{0, 0, "swapper/0"}, kUs{kOurPid, kOurs, "game"}, kMate{kOurPid, kOther, "mate"},
    kCc{20, 20, "cc1plus"}, kMake{30, 31, "make"};

struct Machine {
  // The thread that leaves the CPU could run on, unless it sleeps.
  void Run(uint64_t time_ns, uint32_t cpu, const Task& from, const Task& to, bool sleeps = false) {
    preemptions.Add({.time_ns = time_ns,
                     .cpu = cpu,
                     .from_pid = from.pid,
                     .from_tid = from.tid,
                     .to_tid = to.tid,
                     .is_preempted = !sleeps,
                     .to_name = to.name});
  }
  // The SWITCH records come after those of the tracepoint.
  std::optional<Preempter> Find(uint64_t from_ns, uint64_t to_ns, uint64_t ran_from_ns = 0) const {
    return preemptions.Find({.tid = kOurs, .ran_from_ns = ran_from_ns, .from_ns = from_ns, .to_ns = to_ns});
  }

  Preemptions preemptions{kOurPid};
};

TEST_CASE("of several threads that ran, the one that ran longest is named", "[preemptions]") {
  Machine machine;
  machine.Run(100, 0, kUs, kMake);
  machine.Run(120, 0, kMake, kCc);
  machine.Run(135, 0, kCc, kIdle);
  machine.Run(140, 0, kIdle, kCc);
  machine.Run(160, 0, kCc, kUs);
  CHECK(machine.Find(101, 161) == Preempter{.tid = 20, .name = "cc1plus", .is_own = false, .others = 1});
  SECTION("a later wait has its own") {
    machine.Run(200, 0, kUs, kMate);
    machine.Run(230, 0, kMate, kUs);
    CHECK(machine.Find(201, 231, 161) == Preempter{.tid = kOther, .name = "mate", .is_own = true});
    CHECK(machine.Find(101, 161)->tid == 20);
  }
  SECTION("until it is forgotten") {
    machine.preemptions.Forget(161);
    CHECK_FALSE(machine.Find(101, 161));
  }
}

TEST_CASE("an idle CPU is told as that", "[preemptions]") {
  Machine machine;
  machine.Run(100, 0, kUs, kIdle);
  machine.Run(150, 0, kIdle, kMake);
  machine.Run(160, 0, kMake, kUs);
  CHECK(machine.Find(100, 160) == Preempter{.tid = 0, .name = "swapper/0", .is_own = false, .others = 1});
}

TEST_CASE("a thread that was moved has the one that got its CPU first", "[preemptions]") {
  Machine machine;
  machine.Run(100, 0, kUs, kMake);
  const bool runs_on = GENERATE(false, true);
  if (!runs_on) {
    machine.Run(110, 0, kMake, kCc);
    machine.Run(180, 0, kCc, kIdle);
  }
  machine.Run(200, 1, kIdle, kUs);
  const std::optional<Preempter> preempter = machine.Find(100, 201);
  REQUIRE(preempter);
  CHECK((preempter->name == "make" && preempter->others == 0));
  CHECK(preempter->is_own.has_value() != runs_on);  // known once it leaves the CPU
}

TEST_CASE("a thread that has ended belongs to no process any more", "[preemptions]") {
  Machine machine;
  machine.Run(100, 0, kUs, kMate);
  machine.Run(150, 0, {CpuSwitch::kEnded, kOther, ""}, kUs);
  const std::optional<Preempter> preempter = machine.Find(100, 151);
  REQUIRE(preempter);
  CHECK((preempter->name == "mate" && !preempter->is_own));
}

TEST_CASE("what was lost leaves no preempter", "[preemptions]") {
  Machine machine;
  machine.Run(100, 0, kUs, kCc);
  SECTION("in between") {
    machine.preemptions.Lose();
    machine.Run(150, 0, kMake, kUs);
  }
  SECTION("seen by the next thread, which did not run before") { machine.Run(150, 0, kMake, kUs); }
  SECTION("the end") {}
  CHECK_FALSE(machine.Find(101, 151));
}

TEST_CASE("a switch without a record concerns its own CPU only", "[preemptions]") {
  Machine machine;
  machine.Run(90, 1, kIdle, kMate);
  machine.Run(100, 0, kUs, kCc);
  machine.Run(110, 1, kMate, kMake);
  machine.Run(120, 1, kCc, kIdle);  // nothing says that make left the CPU
  SECTION("what waits for another CPU is known") {
    machine.Run(150, 0, kCc, kUs);
    CHECK(machine.Find(101, 151) == Preempter{.tid = 20, .name = "cc1plus", .is_own = false});
  }
  SECTION("what waits for this one is not") {
    machine.Run(130, 1, kIdle, kMate);
    CHECK_FALSE(machine.preemptions.Find({.tid = kOther, .from_ns = 111, .to_ns = 131}));
  }
  SECTION("a thread that moved here, without a record of that, has none") {
    machine.Run(140, 1, kIdle, kMake);
    machine.Run(150, 1, kUs, kIdle);
    machine.Run(160, 1, kIdle, kUs);
    CHECK_FALSE(machine.Find(101, 145));
    CHECK(machine.Find(151, 161, 145) == Preempter{.tid = 0, .name = "swapper/0", .is_own = false});
  }
}

TEST_CASE("a wait does not get the preempter of another one", "[preemptions]") {
  Machine machine;
  machine.Run(100, 0, kUs, kCc);
  machine.Run(150, 0, kCc, kUs);
  CHECK_FALSE(machine.Find(200, 210));       // its records are not there yet
  CHECK_FALSE(machine.Find(101, 140));       // it ended before
  CHECK_FALSE(machine.Find(105, 155, 103));  // it ran after that switch
  CHECK_FALSE(machine.Find(90, 155));        // it began before
  CHECK(machine.Find(101, 155, 90));
  CHECK_FALSE(machine.preemptions.Find({.tid = kOther, .from_ns = 101, .to_ns = 155}));
}

TEST_CASE("a thread that sleeps was not preempted", "[preemptions]") {
  Machine machine;
  machine.Run(100, 0, kUs, kCc, true);
  machine.Run(150, 0, kCc, kUs);
  CHECK_FALSE(machine.Find(101, 151));
}

}  // namespace
}  // namespace perfkit::session
