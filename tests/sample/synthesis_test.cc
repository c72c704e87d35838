// What existed before a sampler: the state of whole machines, which takes no right to read but that of procfs.
#include "src/sample/synthesis.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "src/elf/image.h"
#include "src/elf/notes.h"
#include "src/proc/threads.h"
#include "src/sys/files.h"
#include "src/sys/map_file.h"
#include "tests/sample/support.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/skip.h"

namespace perfkit::sample {
namespace {

// A process that waits, under a name of its own, until the end of the scope.
class WaitingProcess {
 public:
  explicit WaitingProcess(const char* name, void (*at_signal)(int) = nullptr) {
    int named[2] = {-1, -1};
    if (pipe(named) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      prctl(PR_SET_NAME, name);
      if (at_signal != nullptr) signal(SIGUSR1, at_signal);
      (void)!write(named[1], "n", 1);
      for (;;) pause();
    }
    char byte = 0;
    (void)!read(named[0], &byte, 1);
    close(named[0]);
    close(named[1]);
  }
  ~WaitingProcess() { End(); }
  WaitingProcess(const WaitingProcess&) = delete;
  WaitingProcess& operator=(const WaitingProcess&) = delete;

  void End() {
    const pid_t pid = std::exchange(pid_, -1);
    if (pid <= 0) return;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  uint32_t pid() const { return static_cast<uint32_t>(pid_); }

 private:
  pid_t pid_ = -1;
};

// What synthesized records say.
struct ToldState {
  std::set<uint32_t> pids;
  std::map<uint32_t, std::string> names;     // By tid.
  std::map<uint32_t, uint64_t> code_bytes;   // By pid: the size of all mappings.
  std::set<uint32_t> with_this_code;         // Processes that have mapped the code of this test.
  std::map<std::string, std::string> build;  // By pid and path: the build-id of a mapping.

  void Add(const RawRecord& raw, const SampleLayout& layout) {
    const auto here = reinterpret_cast<uint64_t>(&CountHere);
    const bool parsed =
        Dispatch(raw, layout,
                 Overloaded{[&](const ForkRecord& fork) {
                              CHECK(fork.pid == fork.parent_pid);
                              pids.insert(fork.pid);
                            },
                            [&](const CommRecord& comm) { names[comm.tid] = comm.name; },
                            [&](const MmapRecord& map) {
                              CHECK(pids.contains(map.pid));  // After the process itself.
                              code_bytes[map.pid] += map.length;
                              if (here - map.address < map.length) with_this_code.insert(map.pid);
                              build[std::to_string(map.pid) + std::string(map.name)] =
                                  std::string(reinterpret_cast<const char*>(map.build_id.data()), map.build_id.size());
                            }});
    CHECK(parsed);
  }
  static void CountHere() {}
};

Plan WholeMachine() {
  SamplerOptions options;
  options.side_band = true;
  return Plan::Make(options, Target::System()).value();
}

// The build-id in the file of this program; "" if its linker made none.
std::string OwnBuildId() {
  const absl::StatusOr<sys::Mapping> file = sys::MapFile("/proc/self/exe");
  REQUIRE(file.ok());
  const absl::StatusOr<elf::Image> image = elf::Image::Parse(file->bytes());
  REQUIRE(image.ok());
  const base::Bytes id = elf::BuildId(*image).value_or(base::Bytes());
  return std::string(reinterpret_cast<const char*>(id.data()), id.size());
}

std::set<uint32_t> PidsNow() {
  std::set<uint32_t> pids;
  for (const pid_t pid : proc::ParseTaskNames(*sys::ListFolder("/proc"))) pids.insert(static_cast<uint32_t>(pid));
  return pids;
}

// Reads on until all processes are read, and shows their records. Each ReadMore reads at least one process.
template <class Visit>
void ReadOthers(SynthesizedRecords& records, Visit visit) {
  for (size_t reads = PidsNow().size() + 100; reads > 0; --reads) {
    records.ReadMore();
    if (!records.has_next()) continue;  // A process that has ended.
    const uint64_t time_ns = records.time_ns();
    while (const std::optional<RawRecord> raw = records.Next()) visit(*raw, time_ns);
  }
}

TEST_CASE("a whole machine's state is that of all its processes", "[synthesis][law]") {
  const WaitingProcess process("waits");
  const Plan plan = WholeMachine();
  std::set<uint32_t> lived = PidsNow();
  SynthesizedRecords records(plan, 5);
  ToldState told;
  while (const std::optional<RawRecord> raw = records.Next()) {
    CHECK(plan.layout().TimeOf(*raw) == 5u);
    told.Add(*raw, plan.layout());
  }
  // On a slow machine not all are read in the half second of the constructor.
  ReadOthers(records, [&](const RawRecord& raw, uint64_t) { told.Add(raw, plan.layout()); });
  std::erase_if(lived, [now = PidsNow()](uint32_t pid) { return !now.contains(pid); });
  for (const uint32_t pid : lived) {
    CAPTURE(pid);
    CHECK(told.pids.contains(pid));
  }
  const auto self = static_cast<uint32_t>(getpid());
  CHECK(told.names[process.pid()] == "waits");
  CHECK(told.with_this_code.contains(self));
  CHECK(told.with_this_code.contains(process.pid()));
  CHECK(told.code_bytes[process.pid()] > 0);
  const std::string path = sys::LinkTarget("/proc/self/exe");
  const std::string build_id = OwnBuildId();
  for (const uint32_t pid : {self, process.pid()}) {
    const auto found = told.build.find(std::to_string(pid) + path);
    REQUIRE(found != told.build.end());
    CHECK(found->second == build_id);
  }
  CHECK_FALSE(records.Next().has_value());
}

std::string g_secret;
int OpenAllButSecret(const char* path, int flags) {
  if (path == g_secret) return errno = EACCES, -1;
  return sys::kLinux.open(path, flags);
}

TEST_CASE("a process whose mappings may not be read is counted, and has its names", "[synthesis][law]") {
  const WaitingProcess process("secret");
  SamplerOptions options;
  options.side_band = true;
  const Plan plan = Plan::Make(options, Target::Process(static_cast<int>(process.pid()))).value();
  testing::FakeKernel fake;
  fake.below().open = OpenAllButSecret;
  for (const bool secret : {false, true}) {
    g_secret = secret ? "/proc/" + std::to_string(process.pid()) + "/maps" : "";
    SynthesizedRecords records(plan, 5);
    ToldState told;
    while (const std::optional<RawRecord> raw = records.Next()) told.Add(*raw, plan.layout());
    CHECK(records.unread() == (secret ? 1 : 0));
    CHECK(told.with_this_code.contains(process.pid()) != secret);
    CHECK(told.names[process.pid()] == "secret");
  }
}

// Stands still, so that no reading takes too long.
timespec g_stopped{};
int StoppedClock(clockid_t clock, timespec* now) {
  if (clock != CLOCK_MONOTONIC) return sys::kLinux.clock_gettime(clock, now);
  *now = g_stopped;
  return 0;
}

// Each look at the clock takes a second.
time_t g_second = 0;
int SlowClock(clockid_t, timespec* now) {
  *now = {++g_second, 0};
  return 0;
}

TEST_CASE("what takes too long at the start is read by the drains", "[synthesis][law]") {
  const WaitingProcess process("late");
  const Plan plan = WholeMachine();
  testing::FakeKernel fake;
  fake.below().clock_gettime = SlowClock;
  const uint64_t before = fake.calls(testing::Call::kOpen);
  SynthesizedRecords records(plan, 5);
  const uint64_t at_start = fake.calls(testing::Call::kOpen) - before;
  ToldState told;
  while (const std::optional<RawRecord> raw = records.Next()) told.Add(*raw, plan.layout());
  CHECK(told.pids.size() == 1);
  CHECK(records.unread() <= 1);
  // Each with the time when it is read, which is later than that of all samples before.
  std::set<uint32_t> at_once = told.pids;
  ReadOthers(records, [&](const RawRecord& raw, uint64_t time_ns) {
    CHECK(records.is_late());
    CHECK(time_ns > 5);
    CHECK(plan.layout().TimeOf(raw) == time_ns);
    told.Add(raw, plan.layout());
  });
  CHECK(fake.calls(testing::Call::kOpen) - before > at_start + 2);
  CHECK(told.pids.size() > at_once.size());
  CHECK(told.with_this_code.contains(process.pid()));
  CHECK(told.names[process.pid()] == "late");
}

TEST_CASE("processes that are not read any more count as unread", "[synthesis][law]") {
  testing::FakeKernel fake;
  fake.below().clock_gettime = SlowClock;
  SynthesizedRecords records(WholeMachine(), 5);
  while (records.Next()) continue;
  const uint64_t before = records.unread();
  records.Close();
  CHECK(records.unread() > before);
  records.ReadMore();
  CHECK_FALSE(records.has_next());
}

// Before the mappings of this process are opened, it becomes another program: so often.
pid_t g_executes = 0;
int g_programs = 0;
int OpenAfterExec(const char* path, int flags) {
  if (g_programs > 0 && path == "/proc/" + std::to_string(g_executes) + "/maps") {
    --g_programs;
    const std::string folder = "/proc/" + std::to_string(g_executes), before = sys::LinkTarget(folder + "/exe");
    const auto sleeps = [&] { return sys::ReadFile(folder + "/stat").value_or("").find(") S ") != std::string::npos; };
    kill(g_executes, SIGUSR1);
    while (sys::LinkTarget(folder + "/exe") == before) continue;
    while (!sleeps()) continue;  // Only then exec is complete, and the program runs.
  }
  return sys::kLinux.open(path, flags);
}

// Becomes a program that waits, at SIGUSR1.
void BecomeSleep(int) { execl("/bin/sleep", "sleep", "1000", nullptr); }

TEST_CASE("a process that becomes another program while it is read late has no mappings of before",
          "[synthesis][law]") {
  WaitingProcess process("executes", BecomeSleep);
  g_executes = static_cast<pid_t>(process.pid());
  const Plan plan = WholeMachine();
  testing::FakeKernel fake;
  fake.below().clock_gettime = SlowClock;
  fake.below().open = OpenAfterExec;
  SynthesizedRecords records(plan, 5);
  while (records.Next()) continue;
  g_programs = 1;
  ToldState told;
  uint64_t began = 0, told_ns = 0;
  ReadOthers(records, [&](const RawRecord& raw, uint64_t time_ns) {
    if (g_programs == 1) began = time_ns;
    told.Add(raw, plan.layout());
    if (told.pids.contains(process.pid()) && told_ns == 0) told_ns = time_ns;
  });
  CHECK(g_programs == 0);
  CHECK_FALSE(told.with_this_code.contains(process.pid()));
  CHECK(told.code_bytes[process.pid()] > 0);
  CHECK(told_ns > began + 2'000'000'000);  // The time of the second reading: the clock takes a second a look.
}

TEST_CASE("the state of a process has that of the children which inherit its events", "[synthesis][law]") {
  const WaitingProcess child("child");
  SamplerOptions options;
  options.side_band = true;
  for (const bool inherit : {true, false}) {
    const Target process = Target::Process(getpid());
    const Plan plan = Plan::Make(options, inherit ? process : process.WithoutInherit()).value();
    SynthesizedRecords records(plan, 5);
    ToldState told;
    while (const std::optional<RawRecord> raw = records.Next()) told.Add(*raw, plan.layout());
    CHECK(told.pids.contains(static_cast<uint32_t>(getpid())));
    CHECK(told.with_this_code.contains(child.pid()) == inherit);
  }
}

TEST_CASE("on whole CPUs a process that ends before the first drain has its code", "[synthesis][law]") {
  WaitingProcess process("was-there");
  SamplerOptions options;
  options.side_band = true;
  auto sampler = Sampler::Open(options, Target::System());
  if (absl::IsPermissionDenied(sampler.status())) SKIP_TEST("this user may not watch CPUs");
  REQUIRE(sampler.ok());
  {
    testing::FakeKernel fake;  // The process is read by the start, not by a drain.
    sys::kLinux.clock_gettime(CLOCK_MONOTONIC, &g_stopped);
    fake.below().clock_gettime = StoppedClock;
    REQUIRE(sampler->Start().ok());
  }
  const uint32_t pid = process.pid();
  process.End();
  ToldState told;
  bool is_kernels = false;
  sampler->Drain([&](const SamplerRecord& record) {
    is_kernels = is_kernels || !record.synthesized;
    CHECK(is_kernels != record.synthesized);  // What existed comes first.
    if (record.synthesized) told.Add(record, sampler->layout());
  });
  CHECK(told.names[pid] == "was-there");
  CHECK(told.with_this_code.contains(pid));
}

}  // namespace
}  // namespace perfkit::sample
