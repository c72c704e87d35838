// What a kernel can is found by trying: on each kernel of the matrix perfkit's verdict is that of a bare system call,
// and what is missing is done without, as documented.
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "perfkit/capabilities.h"
#include "perfkit/sampler.h"
#include "tests/pmu/pmu.h"
#include "tests/sample/support.h"

namespace perfkit {
namespace {

using testing::Loop;
using Id = CapabilityId;

// perf_event_attr by words and bits, because the headers that this is compiled with may be older than the kernel.
// include/uapi/linux/perf_event.h: the flags are the word at byte 40.
struct RawAttr {
  perf_event_attr attr{};
  RawAttr(uint32_t type, uint64_t config) {
    attr.size = PERF_ATTR_SIZE_VER5;
    attr.type = type;
    attr.config = config;
    attr.exclude_kernel = attr.exclude_hv = 1;
  }
  RawAttr& Flag(int bit) {
    uint64_t flags = 0;
    char* const at = reinterpret_cast<char*>(&attr) + kFlagsAt;
    memcpy(&flags, at, sizeof(flags));
    flags |= uint64_t{1} << bit;
    memcpy(at, &flags, sizeof(flags));
    return *this;
  }
  RawAttr& ReadFormat(uint64_t format) {
    attr.read_format = format;
    return *this;
  }
  static constexpr size_t kFlagsAt = 40;
};

constexpr int kInheritBit = 1, kInheritThreadBit = 35, kRemoveOnExecBit = 36, kSigtrapBit = 37;
constexpr uint64_t kLostFormat = 16;

bool Opens(const RawAttr& raw) {
  const long fd = syscall(SYS_perf_event_open, &raw.attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (fd >= 0) close(static_cast<int>(fd));
  return fd >= 0;
}

RawAttr Dummy() { return RawAttr(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY); }

bool KernelHasInheritThread() { return Opens(Dummy().Flag(kInheritBit).Flag(kInheritThreadBit)); }
bool KernelHasLost() { return Opens(Dummy().ReadFormat(kLostFormat)); }
bool KernelHasSigtrap() {
  RawAttr raw(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);
  raw.attr.sample_period = 1'000'000;
  raw.attr.disabled = 1;
  raw.attr.size = sizeof(raw.attr);
  return Opens(raw.Flag(kRemoveOnExecBit).Flag(kSigtrapBit));
}

// Whether the page of an event of instructions that asks for a register has one.
bool KernelLendsRegisters() {
  RawAttr raw(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
#if defined(__aarch64__)
  raw.attr.config1 = 2;
#endif
  const long fd = syscall(SYS_perf_event_open, &raw.attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (fd < 0) return false;
  void* const page = mmap(nullptr, static_cast<size_t>(getpagesize()), PROT_READ, MAP_SHARED, static_cast<int>(fd), 0);
  bool lends = false;
  if (page != MAP_FAILED) {
    lends = static_cast<perf_event_mmap_page*>(page)->cap_user_rdpmc != 0;
    munmap(page, static_cast<size_t>(getpagesize()));
  }
  close(static_cast<int>(fd));
  return lends;
}

TEST_CASE("what perfkit says of this kernel is what a bare system call finds", "[exact][features]") {
  NEED_EXACT_PMU();
  const Capabilities all = ProbeCapabilities();
  for (const auto& [id, there] :
       {std::pair(Id::kInheritThread, KernelHasInheritThread()), std::pair(Id::kFormatLost, KernelHasLost()),
        std::pair(Id::kSigtrap, KernelHasSigtrap()), std::pair(Id::kUserReads, KernelLendsRegisters()),
        std::pair(Id::kPmu, true), std::pair(Id::kPerf, true)}) {
    const Capability& row = all.of(id);
    INFO(row.name << ": " << row.found << row.cause);
    CHECK((row.state == CapabilityState::kPresent) == there);
    printf("%s: %s\n", std::string(row.name).c_str(), there ? row.found.c_str() : row.cause.c_str());
    if (there) continue;
    CHECK(row.state == CapabilityState::kMissing);
    CHECK_FALSE(row.cause.empty());
    CHECK_FALSE(row.remedy.empty());
  }
}

// Which of the matrix this is, so that "missing" cannot be a mistake of both: what came first is there if what came
// later is. 5.13: inherit_thread, sigtrap; 5.17: registers on arm64; 6.0: PERF_FORMAT_LOST, which went back to older
// ones too.
TEST_CASE("features come in the order in which kernels got them", "[exact][features]") {
  NEED_EXACT_PMU();
  CHECK(KernelHasInheritThread() == KernelHasSigtrap());
#if defined(__aarch64__)
  if (KernelLendsRegisters()) CHECK(KernelHasInheritThread());
#endif
}

TEST_CASE("without registers the kernel is asked, with the same numbers", "[exact][features]") {
  NEED_EXACT_PMU();
  const CounterSet set = MustOpen(std::array{EventSpec("instructions:u")});
  CHECK(set.path(0) == (KernelLendsRegisters() ? ReadPath::kUserPage : ReadPath::kGroupRead));
  const auto only = CounterSet::Open({"instructions:u"}, Target::ThisThread(), Only(ReadPath::kUserPage));
  CHECK(only.ok() == KernelLendsRegisters());
  if (!only.ok()) CHECK(only.status().message().find("user page") != std::string_view::npos);
  Snapshot begin, end;
  set.Read(begin);
  Loop(1000);
  set.Read(end);
  CHECK(set.Difference(begin, end, 0).value >= 1000 * testing::kLoopInstructions);
  CHECK(set.Difference(begin, end, 0).value < 1000 * testing::kLoopInstructions + 1000);
}

// Without inherit_thread an event is inherited by children of the process as well: counted, and known to be so.
TEST_CASE("all threads are counted, and children with them where the kernel cannot tell", "[exact][features]") {
  NEED_EXACT_PMU();
  constexpr uint64_t kRounds = 1'000'000, kOne = kRounds * testing::kLoopInstructions;
  absl::StatusOr<CounterSet> set = CounterSet::Open({"instructions:u"}, Target::AllThreads());
  INFO(set.status().ToString());
  REQUIRE(set.ok());
  Snapshot begin, threads, child;
  set->Read(begin);
  std::thread([] { Loop(kRounds); }).join();
  set->Read(threads);
  const pid_t pid = fork();
  if (pid == 0) {
    Loop(kRounds);
    _exit(0);
  }
  REQUIRE(waitpid(pid, nullptr, 0) == pid);
  set->Read(child);
  const uint64_t of_thread = set->Difference(begin, threads, 0).value;
  const uint64_t of_child = set->Difference(threads, child, 0).value;
  INFO(of_thread << ", " << of_child);
  CHECK(of_thread >= kOne);
  CHECK(of_thread < kOne + kOne / 4);
  if (KernelHasInheritThread()) {
    CHECK(of_child < kOne / 4);
  } else {
    CHECK(of_child >= kOne);
    CHECK(of_child < kOne + kOne / 4);
  }
}

TEST_CASE("samples come on every kernel, and losses are exact where it counts them", "[exact][features]") {
  NEED_EXACT_PMU();
  SamplerOptions options;
  options.events = {{.event = "page-faults:u", .rate = Period{1}}};
  options.ring_bytes = 4096;
  absl::StatusOr<Sampler> sampler = Sampler::Open(options);
  INFO(sampler.status().ToString());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  testing::FreshPages memory(1000);
  memory.Touch(0, memory.pages());
  REQUIRE(sampler->Stop().ok());
  uint64_t delivered = 0;
  testing::ForEachSample(*sampler, [&](const Sample&, const SamplerRecord&) { ++delivered; });
  const SamplerStats stats = sampler->stats();
  const EventAccounting& accounting = stats.events[0];
  CHECK(accounting.counted >= 1000);
  CHECK(accounting.delivered == delivered);
  CHECK(delivered < 1000);
  CHECK(stats.lost_is_lower_bound == !KernelHasLost());
  if (KernelHasLost()) CHECK(accounting.delivered + accounting.lost == accounting.counted);
  if (!KernelHasLost()) CHECK(accounting.delivered + accounting.lost <= accounting.counted);
}

}  // namespace
}  // namespace perfkit
