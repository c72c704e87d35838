// The event table against the kernel's own header, and against the names that perf prints.
#include "src/event/event_table.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "src/event/cache_name.h"

namespace perfkit::event {
namespace {

size_t CountOf(EventCategory category) { return std::ranges::count(AllTableEvents(), category, &TableEvent::category); }

struct Expected {
  const char* name;
  uint32_t type;
  uint64_t config;
};

// Every name and alias of perf's and simpleperf's tables that is not a cache event's.
constexpr Expected kExpected[] = {
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
    {"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    {"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    {"branch-instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
    {"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
    {"bus-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES},
    {"stalled-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
    {"idle-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
    {"stalled-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
    {"idle-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
    {"ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES},
    {"cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
    {"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
    {"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    {"faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
    {"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
    {"cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
    {"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
    {"migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
    {"minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN},
    {"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
    {"alignment-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS},
    {"emulation-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS},
    {"dummy", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY},
    {"bpf-output", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_BPF_OUTPUT},
    {"cgroup-switches", PERF_TYPE_SOFTWARE, 11},  // PERF_COUNT_SW_CGROUP_SWITCHES, Linux 5.13
};

TEST_CASE("the table has 10 hardware, 12 software and 42 cache events, and 4 that perf does not have", "[table]") {
  CHECK(CountOf(EventCategory::kHardware) == 10);
  CHECK(CountOf(EventCategory::kHardware) == PERF_COUNT_HW_MAX);
  CHECK(CountOf(EventCategory::kSoftware) == 12);
  CHECK(CountOf(EventCategory::kCache) == 42);
  CHECK(CountOf(EventCategory::kThread) == 4);
  CHECK(kCacheEventCount ==
        size_t{PERF_COUNT_HW_CACHE_MAX} * size_t{PERF_COUNT_HW_CACHE_OP_MAX} * size_t{PERF_COUNT_HW_CACHE_RESULT_MAX});
  CHECK(AllTableEvents().size() == 68);
}

TEST_CASE("every plain name means what the kernel's header says", "[table]") {
  for (const Expected& expected : kExpected) {
    INFO(expected.name);
    const TableEvent* const found = FindTableEvent(expected.name);
    REQUIRE(found != nullptr);
    CHECK(found->type.type == expected.type);
    CHECK(found->type.config == expected.config);
  }
}

TEST_CASE("names and configs are unique, and each event is found by both", "[table]") {
  std::set<std::string_view> names;
  std::set<std::pair<uint32_t, uint64_t>> configs;
  for (const TableEvent& event : AllTableEvents()) {
    INFO(std::string(event.type.name));
    CHECK(names.insert(event.type.name).second);
    CHECK(configs.insert({event.type.type, event.type.config}).second);
    CHECK(FindTableEvent(event.type.name) == &event);
    CHECK(FindTableEvent(event.type) == &event);
    for (const std::string_view alias : event.aliases) {
      if (!alias.empty()) CHECK(names.insert(alias).second);
    }
  }
}

TEST_CASE("the constants of event_type.h carry the table's names", "[table]") {
  for (const EventType& constant :
       {kCycles, kRefCycles, kTaskClock, kCgroupSwitches, kL1DcacheLoads, kL1DcacheLoadMisses, kL1IcacheLoadMisses,
        kLlcLoads, kLlcLoadMisses, kDtlbLoads, kDtlbLoadMisses, kItlbLoadMisses, kAllocations, kAllocatedBytes,
        kReadBytes, kWrittenBytes}) {
    const TableEvent* const found = FindTableEvent(constant);
    REQUIRE(found != nullptr);
    CHECK(found->type == constant);
  }
}

TEST_CASE("clocks count nanoseconds, and three events are raised in kernel code", "[table]") {
  std::set<std::string_view> clocks, kernel_side;
  for (const TableEvent& event : AllTableEvents()) {
    if (event.unit == "ns") clocks.insert(event.type.name);
    if (event.kernel_side) kernel_side.insert(event.type.name);
  }
  CHECK(clocks == std::set<std::string_view>{"cpu-clock", "task-clock"});
  CHECK(kernel_side == std::set<std::string_view>{"context-switches", "cpu-migrations", "cgroup-switches"});
}

TEST_CASE("a null pointer is a name that no event has", "[table]") {
  const EventSpec spec(static_cast<const char*>(nullptr));
  CHECK(spec.text.empty());
  CHECK_FALSE(spec.type);
  CHECK(FindTableEvent(spec.text) == nullptr);
}

TEST_CASE("what is no name is not found", "[table]") {
  for (const char* name : {"", "cycle", "CYCLES", "Page-Faults", "L1-DCACHE-LOADS", "L1-dcache-", "L1-dcache-loads-",
                           "L1-dcache--loads", "loads", "misses", "L1-dcache-loads-stores", "LLC-misses-miss",
                           "L1-dcache-loads-misses-refs", "l1dx", "noderead"}) {
    INFO(name);
    CHECK(FindTableEvent(name) == nullptr);
  }
  CHECK(FindTableEvent(EventType{0, 0, 1, 0, ""}) == nullptr);
  CHECK(FindTableEvent(EventType{0, 10, 0, 0, ""}) == nullptr);
  CHECK(FindTableEvent(EventType{3, 7, 0, 0, ""}) == nullptr);
}

constexpr uint64_t Cache(uint64_t cache, uint64_t op, uint64_t result) { return cache | op << 8 | result << 16; }

TEST_CASE("cache names take perf's aliases, in either order, with defaults", "[table][cache]") {
  constexpr uint64_t kL1d = PERF_COUNT_HW_CACHE_L1D, kBranch = PERF_COUNT_HW_CACHE_BPU;
  constexpr uint64_t kLlc = PERF_COUNT_HW_CACHE_LL, kNode = PERF_COUNT_HW_CACHE_NODE;
  constexpr uint64_t kRead = PERF_COUNT_HW_CACHE_OP_READ, kWrite = PERF_COUNT_HW_CACHE_OP_WRITE;
  constexpr uint64_t kPrefetch = PERF_COUNT_HW_CACHE_OP_PREFETCH, kMiss = PERF_COUNT_HW_CACHE_RESULT_MISS;
  const std::pair<const char*, uint64_t> cases[] = {
      {"L1-dcache-load-misses", Cache(kL1d, kRead, kMiss)},
      {"L1-dcache-loads-misses", Cache(kL1d, kRead, kMiss)},
      {"L1-data-misses-load", Cache(kL1d, kRead, kMiss)},
      {"l1d-read-miss", Cache(kL1d, kRead, kMiss)},
      {"l1-d-write", Cache(kL1d, kWrite, 0)},
      {"l1d", Cache(kL1d, kRead, 0)},
      {"l1d-miss", Cache(kL1d, kRead, kMiss)},
      {"LLC-speculative-read-misses", Cache(kLlc, kPrefetch, kMiss)},
      {"L2-speculative-load", Cache(kLlc, kPrefetch, 0)},
      {"LLC-refs", Cache(kLlc, kRead, 0)},
      {"LLC-Reference-stores", Cache(kLlc, kWrite, 0)},
      {"branch-loads", Cache(kBranch, kRead, 0)},
      {"bpu-read-miss", Cache(kBranch, kRead, kMiss)},
      {"btb-ops", Cache(kBranch, kRead, 0)},
      {"bpc-access", Cache(kBranch, kRead, 0)},
      {"branches-load-misses", Cache(kBranch, kRead, kMiss)},
      {"node-prefetch-misses", Cache(kNode, kPrefetch, kMiss)},
      {"Data-TLB-load-misses", Cache(PERF_COUNT_HW_CACHE_DTLB, kRead, kMiss)},
      {"d-tlb-stores", Cache(PERF_COUNT_HW_CACHE_DTLB, kWrite, 0)},
      {"Instruction-TLB-miss", Cache(PERF_COUNT_HW_CACHE_ITLB, kRead, kMiss)},
      {"L1-instruction-prefetches", Cache(PERF_COUNT_HW_CACHE_L1I, kPrefetch, 0)},
  };
  for (const auto& [name, config] : cases) {
    INFO(name);
    CHECK(ParseCacheName(name) == config);
  }
}

TEST_CASE("canonical cache names are perf's", "[table][cache]") {
  CHECK(CacheEventName(0, 0, 0) == "L1-dcache-loads");
  CHECK(CacheEventName(0, 2, 1) == "L1-dcache-prefetch-misses");
  CHECK(CacheEventName(2, 1, 1) == "LLC-store-misses");
  CHECK(CacheEventName(5, 0, 1) == "branch-load-misses");
  CHECK(CacheEventName(6, 2, 0) == "node-prefetches");
  for (size_t i = 0; i < kCacheEventCount; ++i) {
    const size_t cache = i / 6, op = i / 2 % 3, result = i % 2;
    CHECK(ParseCacheName(CacheEventName(cache, op, result)) == CacheConfig(cache, op, result));
  }
}

}  // namespace
}  // namespace perfkit::event
