// Allocations and their bytes as events of sets, zones and tasks, against a count of the program's own.
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "perfkit/counter.h"
#include "perfkit/format.h"
#include "perfkit/frame_counter.h"
#include "perfkit/measured_events.h"
#include "perfkit/sampler.h"
#include "perfkit/scope.h"
#include "perfkit/task_counter.h"
#include "perfkit/testing.h"
#include "perfkit/thread_slots.h"
#include "tests/count/frame/zones.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

using testing::Call;
using testing::FakeKernel;

const std::vector<EventSpec> kBoth = {"allocations", "allocated-bytes"};

// What a program has allocated by its own account.
struct Own {
  uint64_t calls = 0, bytes = 0;

  void Add(uint64_t size) {
    ++calls;
    bytes += size;
  }
  friend bool operator==(const Own&, const Own&) = default;
};

Own operator-(const Own& a, const Own& b) { return {a.calls - b.calls, a.bytes - b.bytes}; }

// Allocates and frees at random, and keeps account.
class Allocator {
 public:
  explicit Allocator(unsigned seed) : random_(seed) {}
  ~Allocator() {
    for (void* const memory : held_) free(memory);
  }

  void Work(int steps) {
    for (int i = 0; i < steps; ++i) Step();
  }
  const Own& own() const { return own_; }
  size_t Below(size_t n) { return random_() % n; }

 private:
  void Step() {
    void* volatile& slot = held_[Below(held_.size())];
    const size_t size = 1 + Below(3000);
    // realloc is left to its own test under a sanitizer, which calls the hook only if memory moves.
    switch (Below(testing::kSanitized ? 4 : 6)) {
      case 0: Put(slot, malloc(size)), own_.Add(size); break;
      case 1: Put(slot, calloc(3, size)), own_.Add(3 * size); break;
      case 2: Put(slot, nullptr); break;
      case 3: delete[] New(size); break;
      case 4: slot = realloc(slot, size), own_.Add(size); break;
      default: Put(slot, memalign(64, size)), own_.Add(size);
    }
  }
  // Through a volatile pointer: otherwise the compiler drops the pair.
  char* New(size_t size) {
    char* volatile memory = new char[size];
    own_.Add(size);
    return memory;
  }
  static void Put(void* volatile& slot, void* memory) {
    free(slot);
    slot = memory;
  }

  std::minstd_rand random_;
  std::array<void* volatile, 32> held_{};
  Own own_;
};

CounterSet MustOpen(const std::vector<EventSpec>& events, const CounterOptions& options = {}) {
  absl::StatusOr<CounterSet> set = CounterSet::Open(events, Target::ThisThread(), options);
  INFO(set.status().ToString());
  REQUIRE(set.ok());
  return *std::move(set);
}

// What a set whose first two events are kBoth counts of `work`.
template <class Work>
Own CountedBy(const CounterSet& set, Work&& work) {
  Snapshot begin, end;
  set.Read(begin);
  work();
  set.Read(end);
  const Count calls = set.Difference(begin, end, 0), bytes = set.Difference(begin, end, 1);
  REQUIRE((calls.validity.counted() && bytes.validity.counted()));
  return {calls.value, bytes.value};
}

TEST_CASE("allocations of a set equal the program's own account", "[allocations][law]") {
  const CounterSet set = MustOpen({"allocations", "allocated-bytes", "task-clock", "page-faults"});
  CHECK(set.path(0) == ReadPath::kWrappedMalloc);
  CHECK(set.path(1) == ReadPath::kWrappedMalloc);
  CHECK(set.event(1).unit == "bytes");
  Allocator allocator(1);
  for (int i = 0; i < 200; ++i) {
    const Own before = allocator.own();
    const Own counted = CountedBy(set, [&] { allocator.Work(static_cast<int>(allocator.Below(50))); });
    REQUIRE(counted == allocator.own() - before);
  }
}

TEST_CASE("a call that fails is an allocation without bytes", "[allocations]") {
  if (testing::kSanitized) SKIP_TEST("a sanitizer ends the program");
  const CounterSet set = MustOpen(kBoth);
  void* (*volatile allocate)(size_t) = malloc;
  CHECK(CountedBy(set, [&] { free(allocate(SIZE_MAX / 2)); }) == Own{1, 0});
  CHECK(CountedBy(set, [&] { free(allocate(0)); }) == Own{1, 0});
}

TEST_CASE("allocations of other threads are in their sets alone", "[allocations][law]") {
  std::atomic<bool> stop{false};
  std::thread other([&] {
    Allocator noise(7);
    while (!stop) noise.Work(10);
  });
  const CounterSet set = MustOpen(kBoth);
  Allocator allocator(2);
  int wrong = 0;
  for (int i = 0; i < 100; ++i) {
    const Own before = allocator.own();
    const Own counted = CountedBy(set, [&] { allocator.Work(20); });
    wrong += counted == allocator.own() - before ? 0 : 1;
  }
  stop = true;
  other.join();
  CHECK(wrong == 0);
}

TEST_CASE("a set that is read on another thread has no allocations", "[allocations]") {
  const CounterSet set = MustOpen(kBoth);
  Snapshot begin, end;
  set.Read(begin);
  std::thread([&] { set.Read(end); }).join();
  CHECK(set.Difference(begin, end, 0).validity.has(Validity::kOtherThread));
}

TEST_CASE("the same event twice has one number, in a set with others too", "[allocations]") {
  const CounterSet set = MustOpen({"allocations", "allocations", event::kAllocations, "cpu-clock"});
  Snapshot begin, end;
  set.Read(begin);
  Allocator allocator(3);
  allocator.Work(30);
  set.Read(end);
  for (size_t i = 0; i < 3; ++i) CHECK(set.Difference(begin, end, i).value == allocator.own().calls);
  CHECK(set.Difference(begin, end, 3).validity.counted());
}

TEST_CASE("a read of allocations makes no system call", "[allocations][law]") {
  FakeKernel fake;
  const CounterSet set = MustOpen(kBoth);
  Snapshot begin, end;
  set.Read(begin);
  const uint64_t calls = fake.calls();
  for (int i = 0; i < 1000; ++i) set.Read(end);
  testing::SwitchAway();
  for (int i = 0; i < 1000; ++i) set.Read(end);
  CHECK(fake.calls() == calls);
}

TEST_CASE("where perf is forbidden, allocations still count, and may have been switched", "[allocations][law]") {
  FakeKernel fake;
  fake.FailAll(Call::kPerfEventOpen, EACCES);
  const CounterSet set = MustOpen({"allocations", "allocated-bytes", "page-faults"});
  CHECK(set.path(2) == ReadPath::kUsage);
  Allocator allocator(4);
  CHECK(CountedBy(set, [&] { allocator.Work(40); }) == allocator.own());
  Snapshot begin, end;
  set.Read(begin);
  set.Read(end);
  CHECK(set.Difference(begin, end, 0).validity.has(Validity::kSwitched));
}

TEST_CASE("a child of a fork has no allocations of its parent's set", "[allocations][fork]") {
  if (testing::kSanitized) SKIP_TEST("sanitizers do not stand forks among threads");
  const CounterSet set = MustOpen(kBoth);
  Snapshot begin;
  set.Read(begin);
  const pid_t child = fork();
  if (child == 0) {
    Snapshot end;
    set.Read(end);
    _exit(set.Difference(begin, end, 0).validity.counted() ? 1 : 0);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  Allocator allocator(5);
  CHECK(CountedBy(set, [&] { allocator.Work(10); }) == allocator.own());
}

TEST_CASE("what cannot have allocations says so", "[allocations]") {
  for (const Target& target : {Target::AllThreads(), Target::Process(getpid()), Target::Thread(gettid())}) {
    const absl::Status refused = CounterSet::Open({"allocations"}, target).status();
    CHECK(absl::IsInvalidArgument(refused));
    CHECK_THAT(std::string(refused.message()),
               Catch::Contains("'allocations'") && Catch::Contains("Remedy: open a set"));
    const auto lenient = CounterSet::Open({"allocations", "page-faults"}, target, {.require_all = false});
    REQUIRE(lenient.ok());
    CHECK_FALSE(lenient->reason(0).ok());
    CHECK(lenient->reason(1).ok());
  }
  for (const char* name : {"allocations:u", "allocations:k", "allocated-bytes:D", "{allocations,page-faults}:u"}) {
    CAPTURE(name);
    const auto groups = ParseEventList(name);
    REQUIRE(groups.ok());
    CHECK(absl::IsInvalidArgument(CounterSet::Open(*groups).status()));
  }
  CHECK(absl::IsUnavailable(
      CounterSet::Open({"allocations"}, Target::ThisThread(), {.only_path = ReadPath::kGroupRead}).status()));
  SamplerOptions options;
  options.events = {{.event = "allocations"}};
  const absl::Status sampled = Sampler::Open(options, Target::ThisThread()).status();
  CHECK(absl::IsInvalidArgument(sampled));
  CHECK_THAT(std::string(sampled.message()), Catch::Contains("gives no samples"));
}

TEST_CASE("a group with allocations counts them, and its other events together", "[allocations]") {
  const auto groups = ParseEventList("{page-faults,allocations,task-clock}");
  REQUIRE(groups.ok());
  const auto set = CounterSet::Open(*groups);
  REQUIRE(set.ok());
  Snapshot begin, end;
  set->Read(begin);
  Allocator allocator(6);
  allocator.Work(30);
  set->Read(end);
  CHECK(set->Difference(begin, end, 1).value == allocator.own().calls);
  CHECK(set->Difference(begin, end, 2).value > 0);
}

TEST_CASE("a metric divides the bytes by the allocations", "[allocations]") {
  const CounterSet set = MustOpen(kBoth);
  ScopeTotals total;
  void* (*volatile allocate)(size_t) = malloc;
  {
    const CounterScope scope(set, total);
    for (int i = 0; i < 4; ++i) free(allocate(256));
  }
  const auto metric = Metric::Parse("mean = allocated-bytes / allocations [bytes]");
  REQUIRE(metric.ok());
  const std::string table = FormatTable(set, total, 1'000'000, std::array{*metric});
  CHECK_THAT(table, Catch::Contains("1,024 bytes  allocated-bytes") && Catch::Contains("256"));
}

TEST_CASE("Measure counts the bytes of allocations", "[allocations]") {
  void* (*volatile allocate)(size_t) = malloc;
  const auto m = Measure({event::kAllocatedBytes, event::kAllocations}, [&] {
    for (int i = 0; i < 3; ++i) free(allocate(100));
  });
  CHECK_THAT(m, Costs(300, event::kAllocatedBytes) && Costs(3, event::kAllocations));
  CHECK(m.costs[0].read_path == "wrapped malloc");
}

// operator new is in a library, which calls malloc or aligned_alloc.
TEST_CASE("allocations of libraries are counted", "[allocations]") {
  struct alignas(64) Line {
    char bytes[64];
  };
  const auto m = Measure({event::kAllocatedBytes, event::kAllocations}, [&] {
    Line* volatile line = new Line;
    delete line;
    int* volatile number = new int;
    delete number;
  });
  CHECK_THAT(m, Costs(64 + 4, event::kAllocatedBytes) && Costs(2, event::kAllocations));
}

// Zones at random, each with work of its own. `own` has the self of each zone.
void RandomZones(FrameCounter& frames, Allocator& allocator, std::map<std::string_view, Own>& own, int depth) {
  static constexpr std::array<const char*, 3> kNames = {"load", "build", "draw"};
  const char* const name = kNames[static_cast<size_t>(depth)];
  const FrameCounter::Zone zone(frames, {name});
  for (int i = 0; i < 4; ++i) {
    const Own before = allocator.own();
    allocator.Work(5);
    const Own done = allocator.own() - before;
    own[name].calls += done.calls;
    own[name].bytes += done.bytes;
    if (depth < 2 && allocator.Below(2) == 0) RandomZones(frames, allocator, own, depth + 1);
  }
}

// Zones of one thread, which are of that name in `zones`.
void CheckZones(const std::vector<ZoneStats>& zones, const std::map<std::string_view, Own>& own,
                std::string_view thread) {
  for (const auto& [name, expected] : own) {
    Own counted;
    for (const ZoneStats& zone : zones) {
      if (zone.name != name || zone.thread != thread) continue;
      counted.calls += zone.self[0].value;
      counted.bytes += zone.self[1].value;
    }
    INFO(std::string(thread) << ' ' << std::string(name));
    CHECK(counted.calls == expected.calls);
    CHECK(counted.bytes == expected.bytes);
  }
}

TEST_CASE("allocations of zones on several threads equal the program's own account", "[allocations][law]") {
  FrameCounter frames({.events = {"allocations", "allocated-bytes", "task-clock", "page-faults"}});
  REQUIRE(frames.reason(0).empty());
  CHECK(frames.path(0) == ReadPath::kWrappedMalloc);
  constexpr size_t kThreads = 3;
  static constexpr std::array<const char*, kThreads> kThreadNames = {"", "worker-1", "worker-2"};
  std::array<std::map<std::string_view, Own>, kThreads> own;
  // The nodes of the map are made before a zone is open.
  for (auto& of_thread : own) of_thread = {{"load", {}}, {"build", {}}, {"draw", {}}};
  const auto run = [&](size_t t) {
    Allocator allocator(static_cast<unsigned>(100 + t));
    for (int i = 0; i < 50; ++i) RandomZones(frames, allocator, own[t], 0);
  };
  frames.Mark();
  std::vector<std::thread> threads;
  for (size_t t = 1; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const auto attached = frames.AttachThread(kThreadNames[t]);
      run(t);
    });
  }
  run(0);
  for (std::thread& thread : threads) thread.join();
  frames.Mark();
  const std::vector<ZoneStats> zones = frames.zones();
  CheckLaw(zones, frames.size());
  for (size_t t = 0; t < kThreads; ++t) CheckZones(zones, own[t], kThreadNames[t]);
}

TEST_CASE("allocations of a task are those of its parts, on any thread", "[allocations][law]") {
  TaskCounter tasks({.events = kBoth});
  REQUIRE(tasks.reason(0).empty());
  TaskCounter::Task task = tasks.Create({"job"});
  Own own;
  for (unsigned part = 0; part < 8; ++part) {
    std::thread([&] {
      Allocator allocator(part);
      const auto attached = tasks.AttachThread();
      REQUIRE(attached);
      allocator.Work(20);  // Outside of the task.
      const Own before = allocator.own();
      task.Resume();
      allocator.Work(20);
      task.Suspend();
      const Own done = allocator.own() - before;
      own.calls += done.calls;
      own.bytes += done.bytes;
    }).join();
  }
  const TaskTotals totals = task.totals();
  CHECK(totals.counts[0].value == own.calls);
  CHECK(totals.counts[1].value == own.bytes);
}

TEST_CASE("what perfkit does to attach a thread is not counted", "[measured_events]") {
  ThreadSlots slots(kBoth);
  TaskCounter tasks({.events = kBoth});
  for (int i = 0; i < 20; ++i) {
    std::thread([&] {
      slots.Attach();
      slots.Publish();
    }).join();
    std::thread([&] { tasks.AttachThread(); }).join();
  }
  SlotTotals totals;
  slots.Total(totals);
  const TaskTotals outside = tasks.Outside();
  for (size_t i = 0; i < kBoth.size(); ++i) {
    CHECK(totals.values[i] == 0);
    CHECK(outside.counts[i].value == 0);
  }
}

}  // namespace
}  // namespace perfkit
