// Single probes on machines that are made up: another user's process, memory for rings.
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "perfkit/target.h"
#include "src/base/number.h"
#include "src/doctor/findings.h"
#include "src/open/task_cpu.h"
#include "src/sys/files.h"
#include "src/sys/mapping.h"
#include "tests/support/as_user.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"

namespace perfkit::doctor {
namespace {

using testing::FakeKernel;

TEST_CASE("only a process of another user is tried as one", "[capabilities]") {
  // A /proc with this process alone.
  const testing::TempFolder proc;
  proc.Write("/" + std::to_string(getpid()) + "/comm", "test\n");
  Context context{.rights = sys::ReadRights(), .proc = proc.path(), .workload = {}};
  struct stat folder {};
  REQUIRE(stat((proc.path() + "/" + std::to_string(getpid())).c_str(), &folder) == 0);
  context.rights.euid = folder.st_uid;
  CHECK(ProbeOtherUsers(context).state == CapabilityState::kUntried);
  // The same process is another user's for the next user.
  context.rights.euid = folder.st_uid + 1;
  const Finding finding = ProbeOtherUsers(context);
  INFO(finding.status);
  CHECK(finding.state != CapabilityState::kUntried);
  if (ProbePerf(context).state == CapabilityState::kPresent) {
    CHECK(finding.found == "tried on process " + std::to_string(getpid()));
  }
}

// Returns the KiB that ProbeRingMemory has found: "1,064 KiB: ...".
uint64_t KibOf(std::string found) {
  found = found.substr(0, found.find(" KiB"));
  std::erase(found, ',');
  return base::ParseNumber(found).value_or(0);
}

// A kernel that has `room` bytes for all rings at once.
size_t g_ring_room = 0;
std::map<void*, size_t> g_ring_sizes;

void LimitRings(FakeKernel& fake, size_t pages) {
  g_ring_room = pages * sys::PageSize();
  g_ring_sizes.clear();
  fake.below().mmap = [](void* address, size_t size, int protection, int flags, int fd, off_t offset) {
    if (fd < 0) return sys::kLinux.mmap(address, size, protection, flags, fd, offset);
    if (size > g_ring_room) {
      errno = EPERM;
      return MAP_FAILED;
    }
    void* const at = sys::kLinux.mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return at;
    g_ring_room -= size;
    g_ring_sizes[at] = size;
    return at;
  };
  fake.below().munmap = [](void* at, size_t size) {
    if (const auto ring = g_ring_sizes.find(at); ring != g_ring_sizes.end()) {
      g_ring_room += ring->second;
      g_ring_sizes.erase(ring);
    }
    return sys::kLinux.munmap(at, size);
  };
}

TEST_CASE("rings are held until no further one fits", "[capabilities]") {
  constexpr size_t kPages = 700;
  Context context{.rights = sys::ReadRights(), .workload = {}};
  if (ProbePerf(context).state != CapabilityState::kPresent) SKIP_TEST("this process may not open perf events");
  FakeKernel fake;
  LimitRings(fake, kPages);
  const Finding finding = ProbeRingMemory(context);
  INFO(finding.status);
  // 513, 129, 33, 17, 5 and 3 pages.
  CHECK(KibOf(finding.found) == kPages * sys::PageSize() / 1024);
  CHECK(finding.found.find("350 rings") != std::string::npos);
  CHECK(g_ring_room == kPages * sys::PageSize());
  CHECK(fake.Leaks() == "");
}

// A kernel that lets `g_most` events be open at once, and answers `g_error` to more. Breakpoints are clocks, which each
// machine has.
std::set<int> g_events;
size_t g_most = 0;
int g_error = 0;

void LimitEvents(FakeKernel& fake, size_t most, int error) {
  g_events.clear();
  g_most = most;
  g_error = error;
  fake.below().perf_event_open = [](const sys::PerfEventAttr* attr, pid_t pid, int cpu, int group,
                                    unsigned long flags) {
    if (g_events.size() >= g_most) {
      errno = g_error;
      return -1;
    }
    sys::PerfEventAttr clock = *attr;
    if (attr->type == sys::kTypeBreakpoint) {
      clock.type = sys::kTypeSoftware;
      clock.config = sys::kSwTaskClock;
      clock.config1 = clock.config2 = clock.bp_type = 0;
    }
    const int fd = sys::kLinux.perf_event_open(&clock, pid, cpu, group, flags);
    if (fd >= 0) g_events.insert(fd);
    return fd;
  };
  fake.below().close = [](int fd) {
    g_events.erase(fd);
    return sys::kLinux.close(fd);
  };
}

TEST_CASE("if descriptors run out, the number of breakpoints is a lower bound", "[capabilities]") {
  constexpr size_t kMost = 3;
  Context context{.rights = sys::ReadRights(), .workload = {}};
  if (ProbePerf(context).state != CapabilityState::kPresent) SKIP_TEST("this process may not open perf events");
  FakeKernel fake;
  LimitEvents(fake, kMost, ENOSPC);
  CHECK(ProbeBreakpoints(context).found == "3 at once on a thread");
  for (const int error : {EMFILE, ENFILE}) {
    LimitEvents(fake, kMost, error);
    CHECK(ProbeBreakpoints(context).found == "at least 3 at once on a thread; descriptors ran out");
  }
}

TEST_CASE("without descriptors, ring memory is what was mapped, or more", "[capabilities]") {
  constexpr size_t kRoom = 1 << 14, kMapped = 2 * 1025;  // pages
  Context context{.rights = sys::ReadRights(), .workload = {}};
  if (ProbePerf(context).state != CapabilityState::kPresent) SKIP_TEST("this process may not open perf events");
  FakeKernel fake;
  LimitRings(fake, kRoom);
  LimitEvents(fake, 2, EMFILE);
  const std::string found = ProbeRingMemory(context).found;
  INFO(found);
  CHECK(found.starts_with("at least "));
  CHECK(found.ends_with("; descriptors ran out"));
  CHECK(KibOf(found.substr(std::string_view("at least ").size())) == kMapped * sys::PageSize() / 1024);
  LimitEvents(fake, 0, EMFILE);
  CHECK(absl::IsResourceExhausted(ProbeRingMemory(context).status));
}

// perf_mmap in kernel/events/core.c: kernel.perf_event_mlock_kb for each CPU that is online, for all of a user's rings;
// then RLIMIT_MEMLOCK, for those of a process. Older kernels charge some pages to both, so the sum is an upper bound
// only.
bool RingMemoryIsThatOfLimits() {
  constexpr size_t kLargestPages = 1 << 12, kFew = 8, kLockedPages = 16;
  Context context{.rights = sys::ReadRights(), .workload = {}};
  rlimit locked{};
  if (getrlimit(RLIMIT_MEMLOCK, &locked) != 0) return false;
  locked.rlim_cur = std::min<rlim_t>(locked.rlim_cur, kLockedPages * sys::PageSize());
  if (setrlimit(RLIMIT_MEMLOCK, &locked) != 0) return false;
  const auto text = sys::ReadFile("/proc/sys/kernel/perf_event_mlock_kb");
  const Finding finding = ProbeRingMemory(context);
  printf("%s%s\n", finding.found.c_str(), finding.status.ToString().c_str());
  const bool has_limit = !context.rights.perfmon && context.rights.paranoid.value_or(2) >= 0;
  const auto cpus = open::TaskCpusOf(Target::System());
  if (ProbePerf(context).state != CapabilityState::kPresent || !text.ok() || !cpus.ok() || !has_limit) return true;
  const uint64_t kib_each = base::ParseNumber(text->substr(0, text->find('\n'))).value_or(0);
  const uint64_t page_kib = sys::PageSize() / 1024;
  const uint64_t least = kib_each / page_kib * cpus->size();
  const uint64_t most = least + locked.rlim_cur / sys::PageSize();
  // Another process of the same user may hold rings, too.
  const bool is_alone = geteuid() == testing::OrdinaryUid();
  if (least > kLargestPages + kFew) return !is_alone || finding.found.starts_with("more than ");
  if (most + kFew > kLargestPages) return true;
  const uint64_t found = KibOf(finding.found) / page_kib;
  return found <= most + kFew && (!is_alone || found + kFew >= least);
}

TEST_CASE("ring memory is what the limits of an ordinary user leave", "[capabilities]") {
  CHECK(testing::AsOrdinaryUser(RingMemoryIsThatOfLimits));
}

}  // namespace
}  // namespace perfkit::doctor
