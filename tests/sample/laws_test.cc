// Laws between numbers of different origin: the kernel's switches and its clocks, a clock's samples and the time that
// passed, losses and what is known to have been lost.
#include <fcntl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

#include "perfkit/counter.h"
#include "perfkit/thread_times.h"
#include "tests/sample/support.h"
#include "tests/support/measurement.h"
#include "tests/support/skip.h"

namespace perfkit {
namespace {

using testing::NowNs;

// The times of one thread by all available clocks. `task_ns` includes what a hypervisor steals, as SWITCH records do;
// `cpu_ns` does not.
struct Clocks {
  uint64_t wall_ns = 0, task_ns = 0, cpu_ns = 0, switches = 0, preemptions = 0;

  // All of one moment: without a switch between the first and the last.
  static Clocks Now(const CounterSet& task_clock) {
    Clocks clocks{};
    do {
      clocks.switches = testing::SwitchesByUsage();
      clocks.preemptions = testing::PreemptionsByUsage();
      clocks.wall_ns = NowNs();
      Snapshot now;
      task_clock.Read(now);
      clocks.task_ns = now.values[0];
      clocks.cpu_ns = NowNs(CLOCK_THREAD_CPUTIME_ID);
    } while (testing::SwitchesByUsage() != clocks.switches);
    return clocks;
  }
};

// A thread that computes, sleeps and yields, between two reads of the clocks.
struct Worker {
  pid_t tid = 0;
  Clocks before, after;

  void Run() {
    tid = gettid();
    const auto task_clock =
        CounterSet::Open({event::kTaskClock}, Target::ThisThread(), {.only_path = ReadPath::kGroupRead});
    if (!task_clock.ok()) return;
    testing::SwitchAway();  // known from here on
    before = Clocks::Now(*task_clock);
    for (int i = 0; i < 30; ++i) {
      testing::Spin(4'000'000);
      testing::Sleep(1'000'000);
    }
    after = Clocks::Now(*task_clock);
  }
};

// The sum of a thread's SWITCH records between two times.
ThreadTime Between(const std::vector<std::byte>& records, const SampleLayout& layout, const Worker& worker) {
  ThreadTimes first, all;
  LinearReader reader(records);
  for (RawRecord record; reader.Next(record);) {
    const uint64_t time = layout.TimeOf(record).value_or(UINT64_MAX);
    if (time <= worker.before.wall_ns) first.Add(record, layout);
    if (time <= worker.after.wall_ns) all.Add(record, layout);
  }
  first.Until(worker.before.wall_ns);
  all.Until(worker.after.wall_ns);
  const ThreadTime a = *first.Of(static_cast<uint32_t>(worker.tid)), b = *all.Of(static_cast<uint32_t>(worker.tid));
  return {a.tid,
          b.on_ns - a.on_ns,
          b.off_ns - a.off_ns,
          b.preempted_ns - a.preempted_ns,
          b.switches - a.switches,
          b.preemptions - a.preemptions,
          b.running};
}

// on_ns + off_ns is exactly the wall time by construction. The boundary between both can be wrong, so it is compared
// with the kernel's own accounting of CPU time. Returns false if they differ by more than `tolerance` of the wall time.
bool OnIsCpuTime(double tolerance) {
  SamplerOptions options;
  options.switches = true;
  auto sampler = Sampler::Open(options, Target::AllThreads());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  Worker worker;
  std::thread([&] { worker.Run(); }).join();
  REQUIRE(sampler->Stop().ok());
  REQUIRE(worker.after.wall_ns != 0);
  std::vector<std::byte> records;
  sampler->Drain(
      [&](const SamplerRecord& record) { records.insert(records.end(), record.data, record.data + record.size); });
  const ThreadTime time = Between(records, sampler->layout(), worker);
  const auto wall = static_cast<double>(worker.after.wall_ns - worker.before.wall_ns);
  const auto task = static_cast<double>(worker.after.task_ns - worker.before.task_ns);
  const auto cpu = static_cast<double>(worker.after.cpu_ns - worker.before.cpu_ns);
  const auto on = static_cast<double>(time.on_ns);
  CHECK(sampler->stats().side_band_lost == 0);
  CHECK(time.on_ns + time.off_ns == worker.after.wall_ns - worker.before.wall_ns);
  CHECK(time.switches == worker.after.switches - worker.before.switches);
  CHECK(time.preemptions == worker.after.preemptions - worker.before.preemptions);
  CHECK(time.preempted_ns <= time.off_ns);
  UNSCOPED_INFO("on " << on << " ns, task-clock " << task << ", CPU clock " << cpu << ", wall " << wall);
  return std::abs(on - task) < tolerance * wall && on > cpu - tolerance * wall;
}

TEST_CASE("on and off are the wall time, on is the CPU time within 1 %, switches are getrusage's", "[measurement]") {
  CHECK(testing::HoldsOnceInThree([] { return OnIsCpuTime(0.01); }));
}

// The time of a clock that samples do not represent is what it was told to exclude.
EventAccounting ClockOver(void (*work)()) {
  SamplerOptions options;
  options.events = {{.event = "cpu-clock:u", .rate = Period{100'000}}};
  auto sampler = Sampler::Open(options);
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  work();
  REQUIRE(sampler->Stop().ok());
  testing::DrainAll(*sampler);
  const EventAccounting accounting = sampler->stats().events[0];
  CHECK(accounting.represented == 100'000 * accounting.delivered);
  CHECK(accounting.unsampled_ns ==
        accounting.counted - std::min(accounting.counted, accounting.represented + 100'000 * accounting.lost));
  return accounting;
}

TEST_CASE("a clock in user space has samples for user time, and says how much else there was", "[measurement]") {
  // The clock goes on while a hypervisor has the CPU.
  CHECK(testing::HoldsOnceInThree([] {
    const EventAccounting user = ClockOver([] { testing::Spin(100'000'000); });
    UNSCOPED_INFO("user: " << user.unsampled_ns << " of " << user.counted << " ns without samples");
    return user.unsampled_ns < user.counted / 10;
  }));
  const EventAccounting kernel = ClockOver([] {
    std::vector<char> buffer(1 << 20);
    const int zeros = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
    // Not by read(): a sanitizer's runtime marks each byte of the buffer, in user space.
    for (int i = 0; i < 400; ++i) CHECK(syscall(SYS_read, zeros, buffer.data(), buffer.size()) > 0);
    close(zeros);
  });
  INFO("kernel: " << kernel.unsampled_ns << " of " << kernel.counted << " ns without samples");
  CHECK(kernel.unsampled_ns > kernel.counted / 2);
}

TEST_CASE("each loss lies in an interval, and each interval has lost what it says", "[law]") {
  if (testing::kSanitized) SKIP_TEST("a sanitizer's runtime faults in between, on unknown pages");
  constexpr size_t kPages = 3000, kOthers = 8;  // the test's own first touches, of pages that it does not list
  testing::FreshPages memory(kPages);
  std::vector<uint64_t> before(kPages), after(kPages);
  std::vector<bool> seen(kPages);
  for (size_t i = 0; i < kPages; ++i) before[i] = after[i] = 0;
  auto sampler = Sampler::Open(testing::FaultOptions(8192));
  REQUIRE(sampler.ok());
  const auto drain = [&] {
    testing::ForEachSample(*sampler, [&](const Sample& sample, const SamplerRecord&) {
      const uint64_t page = (*sample.address() - reinterpret_cast<uint64_t>(memory.data())) >> 12;
      if (page < kPages) seen[page] = true;
    });
  };
  drain();
  REQUIRE(sampler->Start().ok());
  for (size_t i = 0; i < kPages; ++i) {
    before[i] = NowNs();
    memory.Touch(i, 1);
    after[i] = NowNs();
    if (i % 500 == 499) drain();
  }
  REQUIRE(sampler->Stop().ok());
  drain();
  const SamplerStats stats = sampler->stats();
  testing::CheckAccountingBalances(stats);
  std::vector<uint64_t> missing(stats.losses.size());
  uint64_t outside = 0;
  for (size_t i = 0; i < kPages; ++i) {
    if (seen[i]) continue;
    const auto lies = [&](const LossInterval& loss) { return before[i] <= loss.to_ns && after[i] >= loss.from_ns; };
    const auto found = std::find_if(stats.losses.begin(), stats.losses.end(), lies);
    if (found == stats.losses.end()) {
      ++outside;
    } else {
      ++missing[static_cast<size_t>(found - stats.losses.begin())];
    }
  }
  CHECK(stats.losses.size() >= 4);
  uint64_t told = 0;
  for (size_t i = 0; i < missing.size(); ++i) {
    CHECK(missing[i] <= stats.losses[i].lost);
    CHECK(missing[i] + kOthers >= stats.losses[i].lost);
    told += stats.losses[i].lost;
  }
  // What is lost last has no record after it that could tell; the kernel's count has it.
  CHECK(outside <= stats.events[0].lost - told);
  CHECK(outside + kOthers >= stats.events[0].lost - told);
}

}  // namespace
}  // namespace perfkit
