// The side band: what existed at the start, later changes, and the times at which threads ran and waited.
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <thread>

#include "perfkit/sampler.h"
#include "perfkit/thread_times.h"
#include "src/proc/module_file.h"
#include "tests/sample/support.h"
#include "tests/support/kernel_version.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"

namespace perfkit {
namespace {

SamplerOptions SideBand() {
  SamplerOptions options;
  options.side_band = true;
  return options;
}

// The state that the records describe at the end.
struct Told {
  std::map<uint64_t, std::pair<uint64_t, std::string>> maps;  // by begin: end and name
  std::map<uint32_t, std::string> names;
  std::set<uint32_t> born, ended;
  uint64_t synthesized = 0, others = 0;

  bool Covers(uint64_t pc) const {
    const auto after = maps.upper_bound(pc);
    return after != maps.begin() && pc < std::prev(after)->second.first;
  }
};

void Listen(Sampler& sampler, Told& told) {
  sampler.Drain([&](const SamplerRecord& record) {
    told.synthesized += record.synthesized;
    told.others += !record.synthesized;
    const bool parsed = Dispatch(
        record, sampler.layout(),
        Overloaded{[&](const MmapRecord& map) {
                     told.maps[map.address] = {map.address + map.length, std::string(map.name)};
                     CHECK((map.mmap2 && map.who.time_ns.has_value() && map.pid == static_cast<uint32_t>(getpid())));
                   },
                   [&](const CommRecord& comm) { told.names[comm.tid] = comm.name; },
                   [&](const ForkRecord& fork) { told.born.insert(fork.tid); },
                   [&](const ExitRecord& exit) { told.ended.insert(exit.tid); }});
    CHECK(parsed);
  });
}

// The kernel leaves an id out if the file's first page is not in memory: so the library is loaded several times.
TEST_CASE("a library that is loaded later is mapped with its build-id", "[side_band]") {
  Dl_info info{};
  void* const in_libm = dlsym(RTLD_DEFAULT, "signgam");
  if (in_libm == nullptr || dladdr(in_libm, &info) == 0) SKIP_TEST("no math library");
  const testing::TempFolder folder;
  const std::string path = folder.path() + "/copy.so";
  std::filesystem::copy_file(info.dli_fname, path);
  const std::string id = proc::ReadBuildId({.path = path, .pid = getpid()}, "/proc");
  if (id.empty()) SKIP_TEST("the math library has no build-id");
  auto sampler = Sampler::Open(SideBand());
  REQUIRE(sampler.ok());
  size_t mapped = 0, with_id = 0;
  for (int load = 0; load < 20 && with_id == 0; ++load) {
    REQUIRE(sampler->Start().ok());
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    REQUIRE(sampler->Stop().ok());
    REQUIRE(library != nullptr);
    dlclose(library);
    sampler->Drain([&](const SamplerRecord& record) {
      Dispatch(record, sampler->layout(),
               Overloaded{[&](const MmapRecord& map) {
                            if (record.synthesized || map.name != path) return;
                            ++mapped;
                            with_id += std::ranges::equal(map.build_id, std::as_bytes(std::span(id))) ? 1 : 0;
                          },
                          [](auto&&) {}});
    });
  }
  CHECK(mapped > 0);
  if (testing::KernelIsAtLeast(5, 12)) CHECK(with_id > 0);
}

// Otherwise the mappings at the start would name what was sampled before it.
TEST_CASE("the state at a start comes after the records of before, however few are read at a time", "[side_band]") {
  SamplerOptions options = testing::FaultOptions();
  options.side_band = true;
  auto sampler = Sampler::Open(options);
  REQUIRE(sampler.ok());
  for (int start = 0; start < 3; ++start) {
    REQUIRE(sampler->Start().ok());
    testing::FreshPages(static_cast<size_t>(start) + 1).Touch(0, static_cast<size_t>(start) + 1);
    REQUIRE(sampler->Stop().ok());
  }
  const size_t at_once = GENERATE(size_t{1}, size_t{7}, SIZE_MAX);
  std::string order;  // "s" for each state, and "." for each sample.
  const auto listen = [&](const SamplerRecord& record) {
    if (record.synthesized && !order.ends_with('s')) order += 's';
    if (record.type == static_cast<uint32_t>(RecordType::kSample)) order += '.';
  };
  while (sampler->Drain(listen, at_once) != 0) {
  }
  REQUIRE(order.starts_with("s."));
  CHECK(std::ranges::count(order, 's') == 3);
  CHECK(std::ranges::count(order, '.') >= 1 + 2 + 3);
  CHECK(sampler->Start().ok());
}

TEST_CASE("states that are never read have an end", "[side_band]") {
  SamplerOptions options = testing::FaultOptions();
  options.side_band = true;
  auto sampler = Sampler::Open(options);
  REQUIRE(sampler.ok());
  const auto start = [&] {
    const absl::Status status = sampler->Start();
    testing::FreshPages(1).Touch(0, 1);
    return status.ok() && sampler->Stop().ok() ? absl::OkStatus() : status;
  };
  absl::Status status;
  for (int starts = 0; status.ok() && starts < 100; ++starts) status = start();
  CHECK(absl::IsResourceExhausted(status));
  sampler->Drain([](const SamplerRecord&) {});
  CHECK(start().ok());
}

TEST_CASE("the state at the start comes first, in the kernel's words", "[side_band]") {
  prctl(PR_SET_NAME, "before");
  auto sampler = Sampler::Open(SideBand(), Target::AllThreads());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  Told told;
  Listen(*sampler, told);
  CHECK(told.synthesized > 3);
  CHECK(told.Covers(reinterpret_cast<uint64_t>(&Listen)));
  CHECK(told.Covers(reinterpret_cast<uint64_t>(&prctl)));
  CHECK(told.born.count(static_cast<uint32_t>(gettid())) == 1);
  CHECK(told.names[static_cast<uint32_t>(gettid())] == "before");
}

TEST_CASE("what changes later is told as it happens", "[side_band][law]") {
  auto sampler = Sampler::Open(SideBand(), Target::AllThreads());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  Told told;
  Listen(*sampler, told);
  const size_t size = 1 << 16;
  void* const code = mmap(nullptr, size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(code != MAP_FAILED);
  pid_t tid = 0;
  std::thread([&] {
    tid = gettid();
    prctl(PR_SET_NAME, "renamed");
  }).join();
  testing::AwaitEnd(tid);
  prctl(PR_SET_NAME, "sample_test");
  REQUIRE(sampler->Stop().ok());
  Listen(*sampler, told);
  munmap(code, size);
  CHECK(told.others > 0);
  CHECK(told.Covers(reinterpret_cast<uint64_t>(code) + size - 1));
  CHECK(told.born.count(static_cast<uint32_t>(tid)) == 1);
  CHECK(told.ended.count(static_cast<uint32_t>(tid)) == 1);
  CHECK(told.names[static_cast<uint32_t>(tid)] == "renamed");
  CHECK(told.names[static_cast<uint32_t>(gettid())] == "sample_test");
  CHECK(sampler->stats().side_band_lost == 0);
}

// A SWITCH record as a sampler with these options would get it.
struct SwitchBytes {
  uint32_t type = 14;
  uint16_t misc, size = 48;
  uint32_t pid = 1, tid;
  uint64_t time_ns, cpu = 0, identifier = 7, padding = 0;

  SwitchBytes(uint32_t tid, uint64_t time_ns, uint16_t misc) : misc(misc), size(40), tid(tid), time_ns(time_ns) {}
  RawRecord raw() const { return {type, misc, size, reinterpret_cast<const std::byte*>(this)}; }
};

SampleLayout SwitchLayout() {
  return SampleLayout(AttrBits{.sample_type = kSampleTid | kSampleTime | kSampleCpu | kSampleIdentifier,
                               .read_format = 0,
                               .branch_sample_type = 0,
                               .regs_user = 0,
                               .regs_intr = 0,
                               .sample_id_all = true});
}

TEST_CASE("times add up exactly, and wrong order counts for nothing", "[side_band]") {
  const SampleLayout layout = SwitchLayout();
  ThreadTimes times;
  const auto add = [&](uint64_t time_ns, uint16_t misc) { times.Add(SwitchBytes(5, time_ns, misc).raw(), layout); };
  add(1000, 0);
  add(1500, kMiscSwitchOut | kMiscSwitchPreempted);
  add(1700, 0);
  add(1600, kMiscSwitchOut);  // late: from 1700 on it is in
  add(1650, kMiscSwitchOut | kMiscSwitchPreempted);
  add(2000, kMiscSwitchOut);
  times.Until(2500);
  const ThreadTime time = *times.Of(5);
  CHECK(time.on_ns == 500 + 300);
  CHECK(time.off_ns == 200 + 500);
  CHECK(time.preempted_ns == 200);
  CHECK(time.switches == 2);
  CHECK(time.preemptions == 1);
  CHECK_FALSE(time.running);
  CHECK_FALSE(times.Of(6).has_value());
  CHECK(times.All().size() == 1);
}

// A FORK or EXIT record as a sampler with these options would get it.
struct TaskBytes {
  uint32_t type;
  uint16_t misc = 0, size = 64;
  uint32_t pid = 1, parent_pid = 1, tid, parent_tid = 1;
  uint64_t time_ns;
  uint32_t who_pid = 1, who_tid;
  uint64_t who_time_ns, cpu = 0, identifier;

  TaskBytes(RecordType type, uint32_t tid, uint64_t time_ns, uint64_t id)
      : type(static_cast<uint32_t>(type)),
        tid(tid),
        time_ns(time_ns),
        who_tid(tid),
        who_time_ns(time_ns),
        identifier(id) {}
  RawRecord raw() const { return {type, misc, size, reinterpret_cast<const std::byte*>(this)}; }
};
static_assert(sizeof(TaskBytes) == 64);

// Adds records of thread 5.
struct TimesOfFive {
  void Switch(uint64_t time_ns, uint16_t misc) { times.Add(SwitchBytes(5, time_ns, misc).raw(), layout); }
  void Task(RecordType type, uint64_t time_ns, uint64_t id = 7) {
    times.Add(TaskBytes(type, 5, time_ns, id).raw(), layout);
  }

  SampleLayout layout = SwitchLayout();
  ThreadTimes times;
};

TEST_CASE("a thread's time ends with its EXIT record", "[side_band]") {
  TimesOfFive five;
  five.Switch(1000, 0);
  five.Task(RecordType::kFork, 1100, 0);  // a sampler's own, about a thread that runs already
  five.Task(RecordType::kExit, 1500);
  five.Switch(1600, kMiscSwitchOut);  // a CPU's events tell of it, too
  five.times.Until(9000);
  REQUIRE(five.times.All().size() == 1);
  const ThreadTime time = *five.times.Of(5);
  CHECK(time.on_ns == 500);
  CHECK(time.off_ns == 0);
  CHECK(time.switches == 0);
  CHECK(time.ended);
  CHECK_FALSE(time.running);
}

TEST_CASE("a late EXIT record ends its thread all the same", "[side_band]") {
  TimesOfFive five;
  five.Switch(1000, 0);
  five.Switch(1500, kMiscSwitchOut);
  five.Task(RecordType::kExit, 1490);
  five.times.Until(9000);
  const ThreadTime time = *five.times.Of(5);
  CHECK((time.on_ns == 500 && time.off_ns == 0 && time.ended));
}

TEST_CASE("the next thread with the same number has times of its own", "[side_band]") {
  const bool has_exit = GENERATE(true, false);
  CAPTURE(has_exit);
  TimesOfFive five;
  five.Switch(1000, 0);
  five.Switch(1500, kMiscSwitchOut);
  if (has_exit) five.Task(RecordType::kExit, 1600);
  five.Task(RecordType::kFork, 10'000);
  CHECK_FALSE(five.times.Of(5).has_value());  // it has not run yet
  five.Switch(10'100, 0);
  five.Task(RecordType::kFork, 10'050);  // its own, late
  five.Switch(10'300, kMiscSwitchOut);
  five.times.Until(10'400);
  const ThreadTime second = *five.times.Of(5);
  CHECK(second.on_ns == 200);
  CHECK(second.off_ns == 100);
  CHECK_FALSE(second.ended);
  REQUIRE(five.times.All().size() == 2);
  const ThreadTime first = five.times.All()[0];
  CHECK(first.on_ns == 500);
  CHECK(first.off_ns == (has_exit ? 100 : 0));
  CHECK(first.ended);
}

TEST_CASE("idle threads, which share one number, have no times", "[side_band]") {
  const SampleLayout layout = SwitchLayout();
  ThreadTimes times;
  times.Add(SwitchBytes(0, 1000, 0).raw(), layout);
  times.Add(SwitchBytes(0, 1500, kMiscSwitchOut).raw(), layout);
  CHECK(times.All().empty());
}

// The records of one thread that starts and ends.
struct OneLife {
  explicit OneLife(const std::function<Target(pid_t tid)>& target) {
    std::atomic<pid_t> tid = 0;
    std::atomic<bool> go = false;
    std::thread thread([&] {
      tid = gettid();
      while (!go) testing::SwitchAway();
      testing::SwitchAway();
    });
    while (tid == 0) std::this_thread::yield();
    SamplerOptions options;
    options.switches = true;
    auto sampler = Sampler::Open(options, target(tid));
    const bool started = sampler.ok() && sampler->Start().ok();
    go = true;
    thread.join();
    testing::AwaitEnd(tid);
    end_ns = testing::NowNs();
    if (!started || !sampler->Stop().ok()) return;
    sampler->Drain([&](const SamplerRecord& record) { Take(record, sampler->layout(), static_cast<uint32_t>(tid)); });
    times.Until(end_ns + kLater);
    time = times.Of(static_cast<uint32_t>(tid));
  }

  void Take(const SamplerRecord& record, const SampleLayout& layout, uint32_t tid) {
    times.Add(record, layout);
    const auto change = SwitchRecord::Parse(record, layout);
    if (change && change->who.tid == tid && first_ns == 0) first_ns = change->who.time_ns.value_or(0);
    const auto exit = ExitRecord::Parse(record, layout);
    if (exit && exit->tid == tid) exit_ns = exit->time_ns;
  }

  static constexpr uint64_t kLater = 1'000'000'000'000;
  ThreadTimes times;
  uint64_t first_ns = 0, exit_ns = 0, end_ns = 0;
  std::optional<ThreadTime> time;
};

TEST_CASE("on and off are a thread's life, and no more", "[side_band][law]") {
  const bool all = GENERATE(true, false);
  CAPTURE(all);
  const OneLife life([all](pid_t tid) { return all ? Target::AllThreads() : Target::Thread(tid); });
  REQUIRE(life.time.has_value());
  CHECK(life.time->ended);
  REQUIRE(life.exit_ns != 0);
  CHECK(life.exit_ns <= life.end_ns);
  CHECK(life.time->on_ns + life.time->off_ns == life.exit_ns - life.first_ns);
}

}  // namespace
}  // namespace perfkit
