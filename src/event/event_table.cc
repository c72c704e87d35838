// The rows of the table. Types and canonical names come from event_type.h; cache events are composed of words.
#include "src/event/event_table.h"

#include <optional>

#include "src/event/cache_name.h"
#include "src/sys/perf_abi.h"

namespace perfkit::event {
namespace {

// All but the 42 cache events.
constexpr size_t kPlainCount = 26;

// One function for each kind of row, so that the rows below contain only their differences.
constexpr TableEvent Hardware(const EventType& type, std::string_view alias = {}) {
  return {.type = type, .category = EventCategory::kHardware, .unit = {}, .aliases = {alias}};
}

constexpr TableEvent Software(const EventType& type, std::string_view alias = {}) {
  return {.type = type, .category = EventCategory::kSoftware, .unit = {}, .aliases = {alias}};
}

constexpr TableEvent Clock(const EventType& type) {
  return {.type = type, .category = EventCategory::kSoftware, .unit = "ns", .aliases = {}};
}

// perf_sw_event_sched (include/linux/perf_event.h) takes the registers of the kernel code that calls it.
constexpr TableEvent KernelSide(const EventType& type, std::string_view alias = {}) {
  return {.type = type, .category = EventCategory::kSoftware, .unit = {}, .kernel_side = true, .aliases = {alias}};
}

constexpr TableEvent OfThread(const EventType& type, std::string_view unit = {}, std::string_view alias = {}) {
  return {.type = type, .category = EventCategory::kThread, .unit = unit, .aliases = {alias}};
}

constexpr std::array<TableEvent, kPlainCount> kPlain = {
    Hardware(kCycles, "cpu-cycles"),
    Hardware(kInstructions),
    Hardware(kCacheReferences),
    Hardware(kCacheMisses),
    Hardware(kBranches, "branch-instructions"),
    Hardware(kBranchMisses),
    Hardware(kBusCycles),
    Hardware(kStalledCyclesFrontend, "idle-cycles-frontend"),
    Hardware(kStalledCyclesBackend, "idle-cycles-backend"),
    Hardware(kRefCycles),
    Clock(kCpuClock),
    Clock(kTaskClock),
    Software(kPageFaults, "faults"),
    KernelSide(kContextSwitches, "cs"),
    KernelSide(kCpuMigrations, "migrations"),
    Software(kMinorFaults),
    Software(kMajorFaults),
    Software(kAlignmentFaults),
    Software(kEmulationFaults),
    Software(kDummy),
    Software(kBpfOutput),
    KernelSide(kCgroupSwitches),
    OfThread(kAllocations),
    OfThread(kAllocatedBytes, "bytes"),
    OfThread(kReadBytes, "bytes", "rchar"),
    OfThread(kWrittenBytes, "bytes", "wchar"),
};

// Returns the plain rows and, after them, each cache with each operation and result.
std::array<TableEvent, kPlainCount + kCacheEventCount> Build() {
  std::array<TableEvent, kPlainCount + kCacheEventCount> all;
  size_t next = 0;
  for (const TableEvent& event : kPlain) all[next++] = event;
  for (size_t cache = 0; cache < kCacheCount; ++cache) {
    for (size_t op = 0; op < kCacheOpCount; ++op) {
      for (size_t result = 0; result < kCacheResultCount; ++result) {
        const EventType type{sys::kTypeHwCache, CacheConfig(cache, op, result), 0, 0,
                             CacheEventName(cache, op, result)};
        all[next++] = {.type = type, .category = EventCategory::kCache, .unit = {}, .aliases = {}};
      }
    }
  }
  return all;
}

// Searches all rows in order, which is shorter than an index.
const TableEvent* FindConfig(uint32_t type, uint64_t config) {
  for (const TableEvent& event : AllTableEvents()) {
    if (event.type.type == type && event.type.config == config) return &event;
  }
  return nullptr;
}

}  // namespace

std::span<const TableEvent> AllTableEvents() {
  static const std::array<TableEvent, kPlainCount + kCacheEventCount> all = Build();  // Made once; immutable.
  return all;
}

// Looks at plain names first: "branches" alone is the hardware event; with more words after it, it is a cache.
const TableEvent* FindTableEvent(std::string_view name) {
  if (name.empty()) return nullptr;
  for (const TableEvent& event : kPlain) {
    if (event.type.name == name || event.aliases[0] == name) return FindConfig(event.type.type, event.type.config);
  }
  const std::optional<uint64_t> config = ParseCacheName(name);
  return config ? FindConfig(sys::kTypeHwCache, *config) : nullptr;
}

const TableEvent* FindTableEvent(const EventType& type) {
  if (type.config1 != 0 || type.config2 != 0) return nullptr;
  return FindConfig(type.type, type.config);
}

}  // namespace perfkit::event
