// Events of a thread that perf does not have: bytes of system calls against a count of the program's own; allocations
// in a program that does not count them (tests/testing has one that does).
#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "perfkit/frame_counter.h"
#include "src/count/thread_io.h"
#include "tests/count/frame/zones.h"
#include "tests/count/sets.h"
#include "tests/support/lying_kernel.h"
#include "tests/support/signal_storm.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace {

// The count of a wrapped malloc that is linked, and not in force; nullptr: none is linked.
const uint64_t* g_word_of_allocations = nullptr;

}  // namespace

extern "C" const uint64_t* perfkit_thread_allocations();
extern "C" const uint64_t* perfkit_thread_allocations() { return g_word_of_allocations; }

namespace perfkit {
namespace {

using testing::Call;
using testing::FakeKernel;

const std::vector<EventSpec> kIo = {"syscall-read-bytes", "syscall-written-bytes"};

struct Own {
  uint64_t read = 0, written = 0;
  friend bool operator==(const Own&, const Own&) = default;
};

Own operator-(const Own& a, const Own& b) { return {a.read - b.read, a.written - b.written}; }

// Writes to a pipe and reads from it at random, and keeps account.
class Pipe {
 public:
  explicit Pipe(unsigned seed) : random_(seed) { REQUIRE(pipe2(ends_, O_CLOEXEC | O_NONBLOCK) == 0); }
  ~Pipe() {
    close(ends_[0]);
    close(ends_[1]);
  }

  void Work(int steps) {
    for (int i = 0; i < steps; ++i) {
      const size_t size = 1 + random_() % bytes_.size();
      Add(own_.written, write(ends_[1], bytes_.data(), size));
      iovec parts[] = {{bytes_.data(), size / 2}, {bytes_.data(), 1}};
      Add(own_.read, random_() % 2 == 0 ? readv(ends_[0], parts, 2) : read(ends_[0], bytes_.data(), size));
    }
  }
  const Own& own() const { return own_; }

 private:
  // A call that finds the pipe empty or full transfers nothing.
  static void Add(uint64_t& sum, ssize_t result) { sum += result > 0 ? static_cast<uint64_t>(result) : 0; }

  std::minstd_rand random_;
  int ends_[2];
  std::array<char, 700> bytes_{};
  Own own_;
};

// What events 0 and 1 of a set count of `work`.
template <class Work>
Own CountedBy(const CounterSet& set, Work&& work) {
  Snapshot begin, end;
  set.Read(begin);
  work();
  set.Read(end);
  const Count read = set.Difference(begin, end, 0), written = set.Difference(begin, end, 1);
  REQUIRE((read.validity.counted() && written.validity.counted()));
  return {read.value, written.value};
}

#define NEED_IO()                                               \
  do {                                                          \
    const absl::Status opened = CounterSet::Open(kIo).status(); \
    if (!opened.ok()) SKIP_TEST(std::string(opened.message())); \
  } while (false)

TEST_CASE("bytes of system calls equal the program's own account", "[thread_events][law]") {
  NEED_IO();
  // With a group, whose reads are system calls too, and without.
  for (const std::vector<EventSpec>& others :
       {std::vector<EventSpec>{}, {"task-clock", "page-faults"}, {"cpu-clock", "task-clock"}}) {
    std::vector<EventSpec> events = kIo;
    events.insert(events.end(), others.begin(), others.end());
    const CounterSet set = MustOpen(events);
    CHECK(set.path(0) == ReadPath::kThreadIo);
    CHECK(set.event(0).unit == "bytes");
    Pipe pipe(1);
    for (int i = 0; i < 100; ++i) {
      const Own before = pipe.own();
      const Own counted = CountedBy(set, [&] { pipe.Work(i % 20); });
      REQUIRE(counted == pipe.own() - before);
    }
  }
}

TEST_CASE("what perfkit reads itself is in no number", "[thread_events][law]") {
  NEED_IO();
  const CounterSet set = MustOpen(kIo), other = MustOpen(kIo), group = MustOpen(kByKernel, Only(ReadPath::kGroupRead));
  Snapshot inner;
  const Own none;
  CHECK(CountedBy(set, [&] {
          for (int i = 0; i < 50; ++i) {
            other.Read(inner);
            group.Read(inner);
          }
        }) == none);
}

const CounterSet* g_read_by_handler[2];

TEST_CASE("what a signal handler reads of counters is in no number of the interrupted code", "[thread_events][law]") {
  if (testing::kHandlersUnseen) SKIP_TEST("ThreadSanitizer does not see handlers");
  NEED_IO();
  const CounterSet set = MustOpen(kIo), group = MustOpen(kByKernel, Only(ReadPath::kGroupRead));
  g_read_by_handler[0] = &set, g_read_by_handler[1] = &group;
  const testing::SignalStorm storm([] {
    Snapshot now;
    for (const CounterSet* const one : g_read_by_handler) one->Read(now);
  });
  uint64_t wrong = 0, right = 0;
  Snapshot begin, end;
  while (storm.handled() < 4000) {
    set.Read(begin);
    set.Read(end);
    const Count read = set.Difference(begin, end, 0);
    if (read.validity.counted()) ++(read.value == 0 ? right : wrong);
  }
  CHECK(wrong == 0);
  CHECK(right > 0);
}

TEST_CASE("bytes of other threads' system calls are in their sets alone", "[thread_events][law]") {
  NEED_IO();
  std::atomic<bool> stop{false};
  Pipe other(2);  // made here: Catch's assertions are for one thread at a time
  std::thread busy([&] {
    while (!stop) other.Work(10);
  });
  const CounterSet set = MustOpen(kIo);
  Pipe pipe(3);
  int wrong = 0;
  for (int i = 0; i < 50; ++i) {
    const Own before = pipe.own();
    const Own counted = CountedBy(set, [&] { pipe.Work(20); });
    wrong += counted == pipe.own() - before ? 0 : 1;
  }
  stop = true;
  busy.join();
  CHECK(wrong == 0);
}

TEST_CASE("zones with bytes of system calls: children and self are the parent", "[thread_events][law]") {
  NEED_IO();
  FrameCounter frames({.events = {"syscall-read-bytes", "wchar", "page-faults"}});
  REQUIRE(frames.reason(0).empty());
  Pipe pipe(4);
  Own outer, inner;
  frames.Mark();
  for (int i = 0; i < 50; ++i) {
    const FrameCounter::Zone zone(frames, {"outer"});
    const Own begin = pipe.own();
    pipe.Work(3);
    {
      const FrameCounter::Zone nested(frames, {"inner"});
      const Own before = pipe.own();
      pipe.Work(5);
      inner.read += (pipe.own() - before).read;
      inner.written += (pipe.own() - before).written;
    }
    outer.read += (pipe.own() - begin).read;
    outer.written += (pipe.own() - begin).written;
  }
  frames.Mark();
  const std::vector<ZoneStats> zones = frames.zones();
  CheckLaw(zones, frames.size());
  const ZoneStats *const of_outer = Find(zones, "outer"), *const of_inner = Find(zones, "inner");
  REQUIRE((of_outer != nullptr && of_inner != nullptr));
  CHECK((of_outer->total[0].value == outer.read && of_outer->total[1].value == outer.written));
  CHECK((of_inner->total[0].value == inner.read && of_inner->total[1].value == inner.written));
}

TEST_CASE("where the account of I/O cannot be read, its events say so", "[thread_events]") {
  for (const auto& [error, code, remedy] :
       {std::tuple{ENOENT, absl::StatusCode::kNotFound, "CONFIG_TASK_IO_ACCOUNTING"},
        std::tuple{EACCES, absl::StatusCode::kPermissionDenied, "dumpable"},
        std::tuple{EMFILE, absl::StatusCode::kResourceExhausted, "ulimit -n"}}) {
    FakeKernel fake;
    static int refuse;  // the fake's functions capture nothing
    refuse = error;
    fake.below().open = [](const char* path, int flags) {
      if (std::string_view(path) != "/proc/thread-self/io") return sys::kLinux.open(path, flags);
      errno = refuse;
      return -1;
    };
    const absl::Status refused = CounterSet::Open(kIo).status();
    CHECK(refused.code() == code);
    CHECK_THAT(std::string(refused.message()), Catch::Contains("'syscall-read-bytes' on this thread") &&
                                                   Catch::Contains("Remedy: ") && Catch::Contains(remedy));
    const auto set = CounterSet::Open({"rchar", "page-faults"}, Target::ThisThread(), {.require_all = false});
    REQUIRE(set.ok());
    CHECK(set->reason(0).code() == code);
    CHECK(set->reason(1).ok());
  }
}

TEST_CASE("a read of the account that fails is a missing number, not 0", "[thread_events]") {
  NEED_IO();
  FakeKernel fake;
  const CounterSet set = MustOpen(std::vector<EventSpec>{"rchar", "wchar", "page-faults"});
  for (const int error : {EIO, ESRCH, int{FakeKernel::kEnd}, int{FakeKernel::kHalf}}) {
    Snapshot begin, end;
    set.Read(begin);
    fake.FailNth(1, error, Call::kPread);
    set.Read(end);
    CHECK(fake.struck() == Call::kPread);
    // Half of the text may have both numbers.
    if (error != FakeKernel::kHalf) CHECK(set.Difference(begin, end, 0).validity == Validity{Validity::kNotCounted});
    CHECK(set.Difference(begin, end, 2).validity.counted());
    set.Read(end);
    CHECK(set.Difference(begin, end, 0).validity.counted());
  }
}

TEST_CASE("the account is one system call for both events", "[thread_events][law]") {
  NEED_IO();
  FakeKernel fake;
  const CounterSet set = MustOpen(kIo);
  Snapshot now;
  const uint64_t calls = fake.calls();
  set.Read(now);
  CHECK(fake.calls() == calls + 1);
}

TEST_CASE("a set with bytes of system calls closes its file, and a forked child has none", "[thread_events][fork]") {
  NEED_IO();
  const size_t before = OpenDescriptors();
  {
    const CounterSet set = MustOpen(kIo);
    Snapshot begin;
    set.Read(begin);
    const pid_t child = fork();
    if (child == 0) {
      Snapshot end;
      set.Read(end);
      _exit(!set.Difference(begin, end, 0).validity.counted() && OpenDescriptors() == before ? 0 : 1);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  CHECK(OpenDescriptors() == before);
}

TEST_CASE("events of a thread are refused for other targets", "[thread_events]") {
  for (const Target& target : {Target::AllThreads(), Target::Process(getpid()), Target::Thread(gettid())}) {
    for (const char* name : {"allocations", "allocated-bytes", "syscall-read-bytes", "syscall-written-bytes"}) {
      CAPTURE(name);
      const absl::Status refused = CounterSet::Open({name}, target).status();
      CHECK(absl::IsInvalidArgument(refused));
      CHECK_THAT(std::string(refused.message()), Catch::Contains("Remedy: open a set on each thread"));
    }
  }
}

TEST_CASE("a program that does not wrap malloc has no allocations, and says how to get them", "[thread_events]") {
  for (const char* name : {"allocations", "allocated-bytes"}) {
    const auto set = CounterSet::Open({name, "page-faults"}, Target::ThisThread(), {.require_all = false});
    REQUIRE(set.ok());
    CHECK(absl::IsUnavailable(set->reason(0)));
    CHECK_THAT(std::string(set->reason(0).message()),
               Catch::Contains("does not link perfkit::testing_alloc. Remedy: "));
    Snapshot begin, end;
    set->Read(begin);
    set->Read(end);
    CHECK(set->Difference(begin, end, 0).validity == Validity{Validity::kNotCounted});
    CHECK(set->Difference(begin, end, 1).validity.counted());
    CHECK(absl::IsUnavailable(CounterSet::Open({name}).status()));
  }
}

TEST_CASE("a wrapped malloc that another one replaces counts nothing, and says so", "[thread_events]") {
  const uint64_t still = 7;
  g_word_of_allocations = &still;
  const absl::Status refused = CounterSet::Open({"allocations"}).status();
  g_word_of_allocations = nullptr;
  CHECK(absl::IsUnavailable(refused));
  CHECK_THAT(std::string(refused.message()), Catch::Contains("another malloc") && Catch::Contains("Remedy: "));
}

TEST_CASE("the account's text is taken as it is, or not at all", "[thread_events]") {
  count::IoBytes bytes;
  CHECK(count::ParseIoBytes("rchar: 12\nwchar: 18446744073709551615\nsyscr: 1\n", bytes));
  CHECK((bytes.read == 12 && bytes.written == ~uint64_t{0}));
  for (const char* text : {"", "rchar: 12", "rchar: 12\n", "rchar: 12\nwchar: ", "rchar: 12\nwchar: 1",
                           "rchar: x\nwchar: 1\n", "wchar: 1\nrchar: 1\n", "rchar: 18446744073709551616\nwchar: 1\n"}) {
    CAPTURE(text);
    CHECK_FALSE(count::ParseIoBytes(text, bytes));
  }
}

}  // namespace
}  // namespace perfkit
