// Records of waits for locks, told to the times off the CPU that they belong to.
#include "src/session/lock_records.h"

#include <catch2/catch.hpp>
#include <iterator>
#include <string>
#include <vector>

#include "src/session/lock_names.h"
#include "src/session/lock_waits.h"
#include "src/sys/futex_lock.h"

int lock_records_test_variable[2] = {1, 2};

namespace perfkit::session {
namespace {

constexpr uint32_t kWaiting = 0, kHolding = 1, kBystander = 2;
constexpr uint64_t kLock = 0x1000;

// Three threads with the numbers 10, 11 and 12.
class LockSamples {
 public:
  LockSamples() {
    builder.AddEvent({.name = "cpu-clock"});
    off_cpu_ = builder.AddEvent({.name = std::string(kOffCpuEvent)});
    for (const char* const name : {"waiter", "holder", "other"}) builder.AddThread(1, ++tid_, name);
    preempted_ = builder.AddWait({.preempted = true});
  }

  void AddOff(uint64_t from_ns, uint64_t to_ns, uint32_t wait = ProfileSample::kNoWait, uint32_t thread = kWaiting) {
    builder.AddSample(
        {.time_ns = from_ns, .weight = to_ns - from_ns, .thread = thread, .wait = wait, .event = off_cpu_});
  }
  void Explain(size_t first = 0, size_t first_whole = 0) {
    records.Explain(builder, {first, first_whole, off_cpu_, preempted_});
  }
  const ProfileWait* WaitOf(size_t sample) {
    const uint32_t wait = samples()[sample].wait;
    return wait == ProfileSample::kNoWait ? nullptr : &builder.profile().waits[wait];
  }
  std::string Text(uint32_t string) { return builder.profile().strings[string]; }
  const std::vector<ProfileSample>& samples() { return builder.profile().samples; }
  uint32_t preempted() const { return preempted_; }

  ProfileBuilder builder;
  LockRecords records;

 private:
  uint32_t tid_ = 9, preempted_ = 0;
  uint16_t off_cpu_ = 0;
};

sys::LockWait LockWaitOf(uint64_t from_ns, uint64_t to_ns, uint64_t released_ns = 0) {
  return {.lock = kLock,
          .from_ns = from_ns,
          .to_ns = to_ns,
          .released_ns = released_ns,
          .tid = 10,
          .holder = 11,
          .releaser = released_ns != 0 ? 11U : 0,
          .kind = sys::LockKind::kMutex,
          .acquired = true,
          .has_one_holder = released_ns != 0};
}

TEST_CASE("a time off the CPU in a recorded wait has its lock, its holder and its waker", "[lock_records]") {
  LockSamples built;
  built.AddOff(110, 190);
  built.records.Add(LockWaitOf(100, 200, 190));
  built.Explain();
  const ProfileWait* const wait = built.WaitOf(0);
  REQUIRE(wait != nullptr);
  CHECK(wait->lock_kind == ProfileLock::kMutex);
  CHECK(wait->lock == kLock);
  CHECK(wait->blocked_in_syscall);
  CHECK(wait->arguments[0] == kLock);
  CHECK(built.Text(wait->detail) == "mutex 0x1000");
  CHECK(wait->holder == kHolding);
  CHECK(wait->holder_since_ns == 100);
  CHECK(wait->examined_ns == 190);
  CHECK(built.Text(wait->waker) == "holder (11)");
  CHECK(built.samples().size() == 1);
  CHECK(built.builder.profile().Check() == absl::OkStatus());
}

TEST_CASE("after the release the thread waited for a CPU", "[lock_records]") {
  LockSamples built;
  built.AddOff(110, 190);
  built.records.Add(LockWaitOf(100, 200, 150));
  built.Explain();
  REQUIRE(built.samples().size() == 2);
  CHECK(built.samples()[0].weight == 40);
  CHECK(built.WaitOf(0)->examined_ns == 150);
  CHECK(built.samples()[1].time_ns == 150);
  CHECK(built.samples()[1].weight == 40);
  CHECK(built.samples()[1].wait == built.preempted());
  built.Explain();  // again: nothing more
  CHECK(built.samples().size() == 2);
}

TEST_CASE("a sample that was handed out is not split", "[lock_records]") {
  LockSamples built;
  built.AddOff(110, 190);
  built.records.Add(LockWaitOf(100, 200, 150));
  built.Explain(0, 1);
  REQUIRE(built.samples().size() == 1);
  CHECK(built.samples()[0].weight == 80);
  CHECK(built.WaitOf(0)->lock == kLock);
}

TEST_CASE("conditions and semaphores are not split, and have no holder", "[lock_records]") {
  LockSamples built;
  built.AddOff(110, 190);
  sys::LockWait record = LockWaitOf(100, 200, 150);
  record.kind = GENERATE(sys::LockKind::kCondition, sys::LockKind::kSemaphore);
  record.holder = 0, record.has_one_holder = false;
  built.records.Add(record);
  built.Explain();
  CHECK(built.samples().size() == 1);
  CHECK(built.WaitOf(0)->holder == ProfileWait::kNoHolder);
  CHECK(built.Text(built.WaitOf(0)->waker) == "holder (11)");
}

TEST_CASE("of several times off the CPU in one wait, the last one has the waker", "[lock_records]") {
  LockSamples built;
  built.AddOff(110, 140), built.AddOff(145, 190);
  built.records.Add(LockWaitOf(100, 200, 190));
  built.Explain();
  CHECK(built.WaitOf(0)->holder == kHolding);
  CHECK(built.WaitOf(0)->waker == 0);
  CHECK(built.Text(built.WaitOf(1)->waker) == "holder (11)");
}

TEST_CASE("what is not in a wait, or not blocked, is told nothing", "[lock_records]") {
  LockSamples built;
  built.AddOff(10, 90);                                        // before
  built.AddOff(60, 130);                                       // less than half of it
  built.AddOff(120, 180, built.preempted());                   // in it, but could run
  built.AddOff(120, 180, ProfileSample::kNoWait, kBystander);  // another thread
  built.AddOff(200, 300);                                      // after
  built.records.Add(LockWaitOf(100, 200, 200));
  built.Explain();
  CHECK(built.samples().size() == 5);
  for (size_t i : {0, 1, 3, 4}) CHECK(built.WaitOf(i) == nullptr);
  CHECK(built.WaitOf(2)->lock_kind == ProfileLock::kNone);
}

TEST_CASE("what an examination has found stays", "[lock_records]") {
  LockSamples built;
  const uint32_t examined = built.builder.AddWait({.blocked_in_syscall = true,
                                                   .syscall = sys::kFutexCall,
                                                   .arguments = {7},
                                                   .waker = built.builder.String("an interrupt"),
                                                   .examined_ns = 130,
                                                   .holder = kBystander,
                                                   .holder_since_ns = 120});
  built.AddOff(110, 190, examined);
  built.records.Add(LockWaitOf(100, 200, 150));
  built.Explain();
  const ProfileWait& wait = *built.WaitOf(0);
  CHECK(wait.lock == kLock);
  CHECK(wait.syscall == sys::kFutexCall);
  CHECK(wait.arguments[0] == 7);
  CHECK(wait.holder == kBystander);
  CHECK(wait.holder_since_ns == 120);
  CHECK(wait.examined_ns == 190);
  CHECK(built.Text(wait.waker) == "an interrupt");
  CHECK(built.samples().size() == 1);  // it was split at the wake-up already
}

TEST_CASE("who held a lock all the time is not known if others may have had it in between", "[lock_records]") {
  LockSamples built;
  built.AddOff(110, 190);
  sys::LockWait record = LockWaitOf(100, 200, 190);
  record.releaser = GENERATE(11U, 12U);  // The holder again, or another thread.
  record.has_one_holder = false;
  built.records.Add(record);
  built.Explain();
  CHECK(built.WaitOf(0)->holder == kHolding);
  CHECK(built.WaitOf(0)->holder_since_ns == 0);
  CHECK(built.Text(built.WaitOf(0)->waker) == (record.releaser == 11 ? "holder (11)" : "other (12)"));
}

TEST_CASE("a number that two threads had is the one's that lived then", "[lock_records]") {
  LockSamples built;
  const uint32_t later = built.builder.AddThread(1, 11, "later");
  built.builder.profile().threads[later].first_ns = 500;
  built.AddOff(110, 190), built.AddOff(610, 690);
  built.records.Add(LockWaitOf(100, 200, 190)), built.records.Add(LockWaitOf(600, 700, 690));
  built.Explain();
  CHECK(built.WaitOf(0)->holder == kHolding);
  CHECK(built.WaitOf(1)->holder == later);
}

TEST_CASE("records are forgotten by the end of their waits", "[lock_records]") {
  LockSamples built;
  built.AddOff(110, 190), built.AddOff(310, 390);
  built.records.Add(LockWaitOf(100, 200)), built.records.Add(LockWaitOf(300, 400));
  CHECK(built.records.bytes() == 2 * sizeof(sys::LockWait));
  built.records.Forget(200);
  CHECK(built.records.bytes() == sizeof(sys::LockWait));
  CHECK(built.records.recorded() == 2);
  built.Explain();
  CHECK(built.WaitOf(0) == nullptr);
  CHECK(built.WaitOf(1)->lock == kLock);
  built.records.Forget(400);
  CHECK(built.records.bytes() == 0);
}

TEST_CASE("a holder by a record needs no proof by the stack", "[lock_records]") {
  LockSamples built;
  built.AddOff(110, 190);
  built.records.Add(LockWaitOf(100, 200, 190));
  built.Explain();
  Profile profile = built.builder.Take();
  KeepProvenHolders(profile, profile.samples);
  CHECK(profile.waits[profile.samples[0].wait].holder == kHolding);
}

TEST_CASE("a lock has the name of what was mapped at the time of the wait", "[lock_records]") {
  LockNames names;
  const auto lock = reinterpret_cast<uintptr_t>(lock_records_test_variable);
  names.LookUp({&lock, 1});
  const uint64_t begin = names.Find(lock).module_begin, end = names.Find(lock).module_end;
  REQUIRE((begin <= lock && lock < end));
  struct Case {
    uint64_t code;
    bool is_named;
  };
  for (const auto& [code, is_named] :
       {Case{begin - 1, true}, Case{begin, false}, Case{end - 1, false}, Case{end, true}}) {
    INFO("code mapped at " << code << ", module from " << begin << " to " << end);
    LockSamples built;
    for (const uint64_t from_ns : {100, 500}) {
      built.AddOff(from_ns + 10, from_ns + 90);
      sys::LockWait wait = LockWaitOf(from_ns, from_ns + 100, from_ns + 90);
      wait.lock = lock;
      built.records.Add(wait);
      built.Explain();
    }
    built.records.NoteMapped(code, 450);
    built.records.AddNames(built.builder);
    const auto detail = [&](size_t sample) { return built.Text(built.WaitOf(sample)->detail); };
    const auto has_name = Catch::Contains("(lock_records_test_variable in session_test");
    CHECK((has_name.match(detail(0))) == is_named);
    CHECK_THAT(detail(1), has_name);
  }
}

TEST_CASE("a program that maps code all the time keeps names of later waits only", "[lock_records]") {
  LockSamples built;
  const auto lock = reinterpret_cast<uintptr_t>(lock_records_test_variable);
  constexpr uint64_t kMappings = 100'000, kWaitNs = kMappings + 1000;
  for (const uint64_t from_ns : {uint64_t{10}, kWaitNs}) {
    built.AddOff(from_ns + 10, from_ns + 90);
    sys::LockWait wait = LockWaitOf(from_ns, from_ns + 100, from_ns + 90);
    wait.lock = lock;
    built.records.Add(wait);
    built.Explain();
  }
  for (uint64_t i = 1; i <= kMappings; ++i) built.records.NoteMapped(i << 12, i);
  built.records.AddNames(built.builder);
  CHECK_THAT(built.Text(built.WaitOf(0)->detail), !Catch::Contains("("));
  CHECK_THAT(built.Text(built.WaitOf(1)->detail), Catch::Contains("(lock_records_test_variable in session_test"));
}

TEST_CASE("sleep in a signal handler is not the lock that it has interrupted", "[lock_records]") {
  LockSamples built;
  built.AddOff(105, 195, built.builder.AddWait({.blocked_in_syscall = true, .syscall = sys::kFutexCall + 1}));
  built.records.Add(LockWaitOf(100, 200, 190));
  built.Explain();
  CHECK(built.WaitOf(0)->lock_kind == ProfileLock::kNone);
  CHECK(built.WaitOf(0)->holder == ProfileWait::kNoHolder);
}

TEST_CASE("after the timeout, a wait for a condition is one for its mutex", "[lock_records]") {
  LockSamples built;
  built.AddOff(105, 150);
  built.AddOff(155, 190);
  built.records.Add({.lock = kLock,
                     .mutex = kLock + 0x100,
                     .from_ns = 100,
                     .to_ns = 200,
                     .signalled_ns = 148,
                     .tid = 10,
                     .kind = sys::LockKind::kCondition});
  built.Explain();
  CHECK(built.WaitOf(0)->lock_kind == ProfileLock::kCondition);
  CHECK(built.WaitOf(1)->lock_kind == ProfileLock::kMutex);
  CHECK(built.WaitOf(1)->lock == kLock + 0x100);
}

TEST_CASE("after the signal, a wait for a condition is one for its mutex", "[lock_records]") {
  constexpr uint64_t kMutex = 0x2000;
  LockSamples built;
  const auto asleep_at = [&](uint64_t address) {
    return built.builder.AddWait({.blocked_in_syscall = true, .syscall = sys::kFutexCall, .arguments = {address}});
  };
  built.AddOff(105, 115, asleep_at(kLock + 8));
  built.AddOff(120, 130);
  built.AddOff(135, 145, asleep_at(kMutex));  // signalled once more meanwhile
  built.AddOff(150, 160);
  built.AddOff(165, 175, asleep_at(kLock + 8));
  built.AddOff(180, 190, asleep_at(kMutex));
  sys::LockWait record = LockWaitOf(100, 200, 148);
  record.kind = sys::LockKind::kCondition;
  record.mutex = kMutex;
  record.signalled_ns = 148;
  record.holder = 0, record.has_one_holder = false;
  built.records.Add(record);
  built.Explain();
  constexpr bool kIsMutex[] = {false, false, true, true, false, true};
  for (size_t i = 0; i < std::size(kIsMutex); ++i) {
    const ProfileWait& wait = *built.WaitOf(i);
    CHECK(wait.lock == (kIsMutex[i] ? kMutex : kLock));
    CHECK(wait.lock_kind == (kIsMutex[i] ? ProfileLock::kMutex : ProfileLock::kCondition));
    CHECK(built.Text(wait.detail) == (kIsMutex[i] ? "mutex 0x2000" : "condition 0x1000"));
    CHECK((wait.waker == 0 || !kIsMutex[i]));
  }
}

}  // namespace
}  // namespace perfkit::session
