// Unwinding on another thread: the same stacks in the same order, accounting that balances, and an end in the middle.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "perfkit/sampler.h"
#include "perfkit/unwinder.h"
#include "src/unwind/dwarf/sampled/record_queue.h"
#include "tests/support/allocations.h"
#include "tests/support/measurement.h"
#include "tests/support/work.h"
#include "tests/unwind/dwarf/sampled/hand_sample.h"

namespace perfkit {
namespace {

using testing::HandSample;
using testing::RegistersOf;

// Samples of a thread of this process that was in qsort, each with a stack of its own that is of no use, and now and
// then a record of something else.
class Stream {
 public:
  explicit Stream(size_t records) {
    for (size_t i = 0; i < records; ++i) {
      if (i % 50 == 7) {
        others_.push_back(testing::RecordBuilder().U32(1).U32(1).Text("name").Finish(RecordType::kComm));
        records_.push_back(Of(testing::AsRecord(others_.back()), i));
        continue;
      }
      const auto pc = reinterpret_cast<uint64_t>(&qsort) + i % 5;
      const std::string stack(64 + i * 8 % 30'000, '\1');
      samples_.push_back(std::make_unique<HandSample>(getpid(), RegistersOf(pc, 0x1000 + 8 * i), stack));
      records_.push_back(Of(samples_.back()->record(), i));
    }
  }
  const std::vector<SamplerRecord>& records() const { return records_; }
  size_t samples() const { return samples_.size(); }

 private:
  static SamplerRecord Of(const RawRecord& raw, size_t i) {
    return {raw, static_cast<uint32_t>(i), i % 3 == 0, i % 2 == 0, i % 5 == 0, 1000 + i};
  }

  std::deque<std::string> others_;
  std::vector<std::unique_ptr<HandSample>> samples_;
  std::vector<SamplerRecord> records_;
};

Unwinder OfThisProcess() {
  Unwinder unwinder;
  CHECK(unwinder.AddProcess(getpid()).ok());
  return unwinder;
}

void CheckAccounting(const UnwindQueueStats& stats) {
  CHECK(stats.pushed == stats.unwound + stats.no_room + stats.malformed + stats.waiting + stats.stopped);
}

TEST_CASE("what is pushed is unwound in order, as it is without a queue", "[queue]") {
  const Stream stream(3000);
  UnwindQueue queue(testing::HandLayout().layout, {.bytes = 64 << 20});
  for (const SamplerRecord& record : stream.records()) REQUIRE(queue.Push(record));
  CHECK(queue.stats().waiting == stream.samples());
  queue.Finish();
  Unwinder unwinder = OfThisProcess(), same = OfThisProcess();
  size_t next = 0;
  std::vector<StackFrame> frames(512);
  queue.Run(unwinder, [&](const QueuedStack& stack) {
    while (stream.records()[next].type != static_cast<uint32_t>(RecordType::kSample)) ++next;
    const SamplerRecord& given = stream.records()[next++];
    REQUIRE(stack.record.event == given.event);
    REQUIRE((stack.record.full_stack == given.full_stack && stack.record.synthesized == given.synthesized));
    REQUIRE((stack.record.foreign == given.foreign && stack.record.weight == given.weight));
    REQUIRE(std::ranges::equal(stack.record.bytes(), given.bytes()));
    REQUIRE(same.Unwind(stack.sample, frames) == stack.stack);
    REQUIRE(std::equal(stack.frames.begin(), stack.frames.end(), frames.begin()));
    REQUIRE(stack.frames.size() == stack.stack.frames);
  });
  const UnwindQueueStats stats = queue.stats();
  CHECK((stats.pushed == stream.samples() && stats.unwound == stats.pushed && stats.stopped == 0));
  CHECK(stats.max_bytes > stream.samples() * 10'000);
  CHECK_FALSE(queue.Push(stream.records()[0]));
  CHECK(queue.stats().stopped == 1);
  CHECK(queue.stats().others_lost == 0);
  CHECK_FALSE(queue.Push(stream.records()[7]));  // a thread's name
  CHECK((queue.stats().stopped == 1 && queue.stats().others_lost == 1));
  CheckAccounting(queue.stats());
}

// The child has another program since its FORK, so what is read of this process may be of a later time.
TEST_CASE("what is read late of a process is known to later samples of a queue", "[queue][law]") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execl("/bin/sleep", "sleep", "1000", nullptr);
    _exit(1);
  }
  const std::string link = "/proc/" + std::to_string(child) + "/exe";
  while (std::filesystem::read_symlink(link) == std::filesystem::read_symlink("/proc/self/exe")) usleep(1000);
  const SampleLayout layout(AttrBits{.sample_type = kSampleTime | testing::HandLayout().fields,
                                     .regs_user = testing::kAllRegisters,
                                     .sample_id_all = true});
  const auto pid = static_cast<uint32_t>(getpid()), forked = static_cast<uint32_t>(child);
  testing::RecordBuilder fork_record;
  fork_record.U32(forked).U32(pid).U32(forked).U32(pid).U64(testing::NowNs());
  const std::string start = fork_record.U32(pid).U32(pid).U64(testing::NowNs()).Finish(RecordType::kFork, 0);
  UnwindQueue queue(layout);
  REQUIRE(queue.Push({testing::AsRecord(start)}));
  for (int i = 0; i < 3; ++i) {
    testing::RecordBuilder sample;
    sample.U32(pid).U32(pid).U64(testing::NowNs() + 1'000'000'000'000).U64(2);
    for (int number = 0; number < std::popcount(testing::kAllRegisters); ++number) {
      sample.U64(reinterpret_cast<uint64_t>(&qsort));  // Among them the pc.
    }
    const std::string bytes = sample.U64(8).U64(0).U64(8).Finish(RecordType::kSample, 2);
    REQUIRE(queue.Push({testing::AsRecord(bytes)}));
  }
  queue.Finish();
  Unwinder unwinder;
  int stacks = 0;
  queue.Run(unwinder, [&](const QueuedStack& stack) {
    ++stacks;
    CHECK(stack.stack.end != StackEnd::kNoMapping);
  });
  CHECK(stacks == 3);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_CASE("a full queue gives samples up, keeps room for other records, and counts both", "[queue]") {
  const Stream stream(1000);
  const SamplerRecord& other = stream.records()[7];
  UnwindQueue queue(testing::HandLayout().layout, {.bytes = 1});
  size_t taken = 0;
  for (const SamplerRecord& record : stream.records()) {
    const bool is_sample = record.type == static_cast<uint32_t>(RecordType::kSample);
    const bool pushed = queue.Push(record);
    taken += is_sample && pushed;
    if (!is_sample) CHECK(pushed);
  }
  CHECK((taken > 5 && taken < stream.samples() / 2));
  UnwindQueueStats stats = queue.stats();
  CHECK((stats.pushed == stream.samples() && stats.no_room == stats.pushed - taken && stats.waiting == taken));
  CHECK(stats.max_bytes <= unwind::RecordQueue::kMinBytes);
  size_t others = 0;
  while (queue.Push(other)) ++others;
  CHECK(others > 100);
  CHECK(queue.stats().others_lost == 1);

  queue.Finish();
  Unwinder unwinder = OfThisProcess();
  size_t visited = 0;
  queue.Run(unwinder, [&](const QueuedStack&) { ++visited; });
  stats = queue.stats();
  CHECK((visited == taken && stats.unwound == taken && stats.waiting == 0 && stats.stopped == 0));
  CheckAccounting(stats);
}

TEST_CASE("two threads at once: each sample is unwound or in the accounting", "[queue]") {
  const Stream stream(500);
  for (const size_t bytes : {size_t{1}, size_t{4} << 20}) {
    UnwindQueue queue(testing::HandLayout().layout, {.bytes = bytes});
    std::atomic<uint64_t> visited = 0, wrong = 0;
    std::thread consumer([&] {
      Unwinder unwinder = OfThisProcess();
      uint32_t last = 0;
      queue.Run(unwinder, [&](const QueuedStack& stack) {
        wrong += stack.record.event < last && stack.record.event != 0;
        last = stack.record.event;
        ++visited;
      });
    });
    uint64_t pushed = 0, refused = 0;
    for (int round = 0; round < 20; ++round) {
      for (const SamplerRecord& record : stream.records()) {
        const bool is_sample = record.type == static_cast<uint32_t>(RecordType::kSample);
        const bool taken = queue.Push(record);
        pushed += is_sample;
        refused += is_sample && !taken;
      }
    }
    queue.Finish();
    consumer.join();
    const UnwindQueueStats stats = queue.stats();
    CHECK((stats.pushed == pushed && stats.no_room == refused && stats.unwound == visited));
    CHECK((stats.unwound + stats.no_room == pushed && stats.stopped == 0 && stats.malformed == 0));
    CHECK(visited > 0);
    CHECK(wrong <= 20);  // each round begins anew
  }
}

TEST_CASE("Stop ends a queue in the middle, from the visitor or from elsewhere, and what is left is counted",
          "[queue][law]") {
  const Stream stream(2000);
  for (const size_t stop_at : {size_t{0}, size_t{1}, size_t{100}}) {
    UnwindQueue queue(testing::HandLayout().layout, {.bytes = 64 << 20});
    for (const SamplerRecord& record : stream.records()) REQUIRE(queue.Push(record));
    if (stop_at == 0) queue.Stop();
    Unwinder unwinder = OfThisProcess();
    size_t visited = 0;
    queue.Run(unwinder, [&](const QueuedStack&) {
      if (++visited == stop_at) queue.Stop();
    });
    CHECK(visited == stop_at);
    CHECK(queue.stats().unwound == stop_at);
    CHECK(queue.stats().stopped == stream.samples() - stop_at);
    CheckAccounting(queue.stats());
  }
  for (int round = 0; round < 20; ++round) {  // whatever each of them is doing
    UnwindQueue queue(testing::HandLayout().layout);
    std::atomic<size_t> visited = 0;
    std::thread consumer([&] {
      Unwinder unwinder = OfThisProcess();
      queue.Run(unwinder, [&](const QueuedStack&) { ++visited; });
    });
    std::thread stopper([&] {
      testing::Sleep(round * 100'000);
      queue.Stop();
    });
    uint64_t pushed = 0;
    for (const SamplerRecord& record : stream.records()) {
      queue.Push(record);
      pushed += record.type == static_cast<uint32_t>(RecordType::kSample);
    }
    stopper.join();
    consumer.join();
    CHECK((queue.stats().pushed == pushed && queue.stats().unwound == visited));
    CheckAccounting(queue.stats());
  }
}

TEST_CASE("a thread that waits for stacks sleeps, and wakes for one", "[queue][measurement]") {
  const Stream stream(1);
  UnwindQueue queue(testing::HandLayout().layout);
  std::atomic<int> visited = 0;
  Unwinder unwinder = OfThisProcess();
  std::thread consumer([&] { queue.Run(unwinder, [&](const QueuedStack&) { ++visited; }); });
  int wanted = 0;
  const auto wake = [&] {
    ++wanted;
    CHECK(queue.Push(stream.records()[0]));
    while (visited < wanted) testing::Sleep(1'000'000);
  };
  wake();  // The tables have been read.
  clockid_t cpu_clock{};
  REQUIRE(pthread_getcpuclockid(consumer.native_handle(), &cpu_clock) == 0);
  CHECK(testing::HoldsOnceInThree([&] {
    const uint64_t begun = testing::NowNs(cpu_clock);
    testing::Sleep(50'000'000);
    wake();
    return testing::NowNs(cpu_clock) - begun < 5'000'000;
  }));
  queue.Finish();
  consumer.join();
}

TEST_CASE("pushing allocates nothing, and what is no sample of the layout is counted", "[queue]") {
  const Stream stream(100);
  UnwindQueue queue(testing::HandLayout().layout);
  const uint64_t before = testing::allocations_so_far;
  for (const SamplerRecord& record : stream.records()) queue.Push(record);
  if (testing::kCountsNew) CHECK(testing::allocations_so_far == before);
  const std::string bad = testing::RecordBuilder().U64(1).Finish(RecordType::kSample);
  const std::string throttle = testing::RecordBuilder().U64(1).U64(1).U64(1).Finish(RecordType::kThrottle);
  CHECK(queue.Push({testing::AsRecord(bad), 0}));
  CHECK(queue.Push({testing::AsRecord(throttle), 0}));
  queue.Finish();
  Unwinder unwinder = OfThisProcess();
  queue.Run(unwinder, [](const QueuedStack&) {});
  CHECK(queue.stats().malformed == 1);
  CHECK(queue.stats().pushed == stream.samples() + 1);
  CheckAccounting(queue.stats());
}

TEST_CASE("a sampler's samples go through a queue, stitched, and all are in the accounting of the one or the other",
          "[queue][law]") {
  SamplerOptions options;
  options.events = {{.event = "task-clock:u", .rate = Period{200'000}}};
  options.stack = CallStack::UserDump(1 << 10, {.every = 8, .bytes = 16 << 10});
  options.side_band = true;
  auto sampler = Sampler::Open(options, Target::AllThreads());
  REQUIRE(sampler.ok());
  UnwindQueue queue(sampler->layout());
  std::atomic<uint64_t> visited = 0, full = 0, wrong = 0;
  std::thread consumer([&] {
    Unwinder unwinder({.stitch_bytes = 1 << 20});
    queue.Run(unwinder, [&](const QueuedStack& stack) {
      ++visited;
      full += stack.record.full_stack;
      const auto pc = stack.sample.user_registers()[unwind::ThisMachine::kPerf[unwind::ThisMachine::kPc]];
      wrong += stack.frames.empty() || stack.frames[0].pc != pc;
    });
  });
  const auto drain = [&] { sampler->Drain([&](const SamplerRecord& record) { queue.Push(record); }); };
  REQUIRE(sampler->Start().ok());
  for (int i = 0; i < 2000 && full < 20; ++i) {
    testing::Spin(2'000'000);
    drain();
  }
  REQUIRE(sampler->Stop().ok());
  drain();
  queue.Finish();
  consumer.join();
  const SamplerStats stats = sampler->stats();
  CHECK(queue.stats().pushed == stats.events[0].delivered + stats.full[0].delivered);
  CHECK(queue.stats().unwound == visited);
  CHECK((visited == queue.stats().pushed - queue.stats().no_room && wrong == 0));
  CHECK(full >= 20);
}

}  // namespace
}  // namespace perfkit
