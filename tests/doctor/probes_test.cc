// Single probes on machines that are made up: another user's process, memory for rings.
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>

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

TEST_CASE("rings are held until no further one fits", "[capabilities]") {
  constexpr size_t kPages = 700;
  Context context{.rights = sys::ReadRights(), .workload = {}};
  if (ProbePerf(context).state != CapabilityState::kPresent) SKIP_TEST("this process may not open perf events");
  FakeKernel fake;
  g_ring_room = kPages * sys::PageSize();
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
  const Finding finding = ProbeRingMemory(context);
  INFO(finding.status);
  // 513, 129, 33, 17, 5 and 3 pages.
  CHECK(KibOf(finding.found) == kPages * sys::PageSize() / 1024);
  CHECK(finding.found.find("350 rings") != std::string::npos);
  CHECK(g_ring_room == kPages * sys::PageSize());
  CHECK(fake.Leaks() == "");
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
