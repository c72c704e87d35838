// Sets whose events are inherited by threads that start later, while many start and end: nothing is lost for good,
// nothing decreases, and a read is a number.
#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <optional>
#include <span>
#include <thread>

#include "tests/count/sets.h"
#include "tests/support/lying_kernel.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

const std::vector<EventSpec> kThreeFaults = {event::kPageFaults, event::kMinorFaults, event::kMajorFaults};

// Two threads that start short threads, one after the other, until the end.
class ShortThreads {
 public:
  ShortThreads() {
    for (std::thread& parent : parents_) parent = std::thread([this] { Work(); });
  }
  ~ShortThreads() { End(); }

  void End() {
    stop_ = true;
    for (std::thread& parent : parents_) {
      if (parent.joinable()) parent.join();
    }
  }
  uint64_t started() const { return started_; }
  // Returns when neither thread does anything, until Resume.
  void Pause() {
    pause_ = true;
    while (waiting_ != parents_.size()) sched_yield();
  }
  void Resume() {
    pause_ = false;
    while (waiting_ != 0) sched_yield();
  }

 private:
  void Wait() {
    ++waiting_;
    while (pause_) usleep(100);
    --waiting_;
  }
  void Work() {
    while (!stop_) {
      if (pause_) Wait();
      std::thread([] {
        testing::FreshPages pages(3);
        pages.Touch(0, 3);
      }).join();
      ++started_;
    }
  }

  std::atomic<bool> stop_{false}, pause_{false};
  std::atomic<uint64_t> started_{0}, waiting_{0};
  std::array<std::thread, 2> parents_;
};

// Opens a set of all threads. Threads that start all the time may keep it from being opened.
std::optional<CounterSet> OpenForAll(std::span<const EventSpec> events) {
  absl::StatusOr<CounterSet> set = absl::UnavailableError("");
  for (int i = 0; i < 20 && !set.ok(); ++i) set = CounterSet::Open(events, Target::AllThreads());
  return set.ok() ? std::optional(*std::move(set)) : std::nullopt;
}

TEST_CASE("no read of a set of all threads fails or decreases while threads start and end", "[inherited][law]") {
  const std::optional<CounterSet> set = OpenForAll(kThreeFaults);
  REQUIRE(set);
  ShortThreads threads;
  Snapshot first, last, now;
  set->Read(first);
  last = first;
  uint64_t missing = 0, decreased = 0;
  for (int i = 0; i < 20'000 || threads.started() < 200; ++i) {
    set->Read(now);
    for (size_t e = 0; e < kThreeFaults.size(); ++e) {
      const Count count = set->Difference(first, now, e);
      missing += !count.validity.counted();
      decreased += count.value < set->Difference(first, last, e).value;
    }
    last = now;
  }
  CHECK(missing == 0);
  CHECK(decreased == 0);
}

// A page fault is a minor or a major one, so their sum shows whether an event lacks a thread. The events are read one
// after the other, and this thread may fault in between: so each sum is held against an earlier and a later reading.
TEST_CASE("a set of all threads that is opened while threads start and end lacks none", "[inherited][law]") {
  for (int round = 0; round < 100; ++round) {
    ShortThreads threads;
    const std::optional<CounterSet> set = OpenForAll(kThreeFaults);
    if (!set) continue;
    std::array<Snapshot, 2> begin, end;
    threads.Pause();
    for (Snapshot& snapshot : begin) set->Read(snapshot);
    const uint64_t before = threads.started();
    threads.Resume();
    while (threads.started() < before + 10) sched_yield();
    threads.Pause();
    for (Snapshot& snapshot : end) set->Read(snapshot);
    threads.Resume();
    const auto most = [&](size_t e) { return set->Difference(begin[0], end[1], e).value; };
    const auto least = [&](size_t e) { return set->Difference(begin[1], end[0], e).value; };
    CAPTURE(round, least(0), most(0), least(1), most(1), least(2), most(2));
    CHECK(least(0) <= most(1) + most(2));
    CHECK(least(1) + least(2) <= most(0));
    CHECK(least(0) > 0);
  }
}

TEST_CASE("a pinned event and the task-clock beside it are counted on every target", "[inherited]") {
  for (const Target& target : {Target::ThisThread(), Target::Thread(gettid()), Target::AllThreads()}) {
    CounterOptions options;
    options.only_path = ReadPath::kGroupRead;
    const auto set = CounterSet::Open({"page-faults:D", "task-clock"}, target, options);
    REQUIRE(set.ok());
    testing::FreshPages memory(20);
    Snapshot begin, end;
    set->Read(begin);
    memory.Touch(0, 20);
    set->Read(end);
    CHECK(set->Difference(begin, end, 0).value >= 20);
    CHECK(set->Difference(begin, end, 0).validity.counted());
    CHECK(set->Difference(begin, end, 1).value > 0);
    CHECK(set->Difference(begin, end, 1).validity.counted());
  }
}

int g_refused_reads = 0;
uint64_t g_taken = 0;  // from each number of a group

// What a read of an inherited group may do while one of its threads ends.
ssize_t ReadWhileThreadEnds(int fd, void* buffer, size_t size) {
  if (g_refused_reads > 0) return --g_refused_reads, errno = ECHILD, -1;
  const ssize_t got = sys::kLinux.read(fd, buffer, size);
  auto* const words = static_cast<uint64_t*>(buffer);
  for (size_t w = 1; got > 0 && w < static_cast<size_t>(got) / sizeof(uint64_t); ++w) {
    words[w] -= std::min(words[w], g_taken);
  }
  return got;
}

TEST_CASE("a group that a thread has inherited which ends now is read again, and keeps its numbers",
          "[inherited][law]") {
  testing::FakeKernel fake;
  testing::MakeHardwareCount(fake);
  fake.below().read = ReadWhileThreadEnds;
  const auto groups = ParseEventList("{cycles,instructions}");
  REQUIRE(groups.ok());
  const auto set = CounterSet::Open(*groups, Target::AllThreads());
  REQUIRE(set.ok());
  Snapshot begin, end;
  set->Read(begin);
  testing::Spin(1'000'000);
  g_refused_reads = 3;
  set->Read(end);
  CHECK(g_refused_reads == 0);
  CHECK(set->Difference(begin, end, 0).validity.counted());
  g_taken = uint64_t{1} << 60;
  Snapshot later;
  set->Read(later);
  g_taken = 0;
  for (const size_t e : {0, 1}) CHECK(set->Difference(begin, later, e).value == set->Difference(begin, end, e).value);
}

}  // namespace
}  // namespace perfkit
