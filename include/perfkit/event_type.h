// Events as constants: the kernel's type and config, with perf's name.
//
// An EventType is a literal type: compare it, use it in constants and tables. This header costs little compile time.
// All other events (sysfs PMUs, tracepoints, breakpoints, modifiers) are written as text: event.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "perfkit/enable.h"

namespace PERFKIT_NAMESPACE {

// The type and configs of a perf_event_attr, and perf's name. `name` must outlive the EventType: use literals. Two
// EventTypes are equal if all members are, names included.
struct EventType {
  uint32_t type = 0;
  uint64_t config = 0;
  uint64_t config1 = 0;
  uint64_t config2 = 0;
  std::string_view name{};

  friend constexpr bool operator==(const EventType&, const EventType&) = default;
};

#if PERFKIT_ENABLE
// An event to open: text in perf's spelling, or a constant. Converts from both, so that a call reads {"cycles:u",
// event::kPageFaults}. Owns `text`; the name of `type` must outlive it.
struct EventSpec {
  // nullptr is "", which is no event: opening it fails.
  EventSpec(const char* written) : text(written != nullptr ? written : "") {}  // NOLINT(google-explicit-constructor)
  EventSpec(std::string_view written) : text(written) {}                       // NOLINT(google-explicit-constructor)
  EventSpec(std::string written) : text(std::move(written)) {}                 // NOLINT(google-explicit-constructor)
  EventSpec(const EventType& known) : text(known.name), type(known) {}         // NOLINT(google-explicit-constructor)

  std::string text;
  std::optional<EventType> type{};  // If set, `text` is only its name, and is not parsed.
};
#endif

// The origin of an event. Lists of events are in this order.
enum class EventCategory : uint8_t {
  kHardware,    // Generic, counted by the CPU.
  kSoftware,    // Counted by the kernel.
  kThread,      // Counted for the calling thread without perf: allocations, bytes of system calls.
  kCache,       // Generic cache events, counted by the CPU.
  kPmu,         // A named event of a PMU under sysfs.
  kTracepoint,  // A static probe in the kernel.
  kRaw,         // A raw event code of the core PMU, from its manual.
  kBreakpoint,  // Accesses to an address in memory.
  kUprobe,      // A dynamic probe at an instruction of a program.
};

namespace event {

// PERF_TYPE_HARDWARE (include/uapi/linux/perf_event.h, enum perf_hw_id).
inline constexpr EventType kCycles{0, 0, 0, 0, "cycles"};
inline constexpr EventType kInstructions{0, 1, 0, 0, "instructions"};
inline constexpr EventType kCacheReferences{0, 2, 0, 0, "cache-references"};
inline constexpr EventType kCacheMisses{0, 3, 0, 0, "cache-misses"};
inline constexpr EventType kBranches{0, 4, 0, 0, "branches"};
inline constexpr EventType kBranchMisses{0, 5, 0, 0, "branch-misses"};
inline constexpr EventType kBusCycles{0, 6, 0, 0, "bus-cycles"};
inline constexpr EventType kStalledCyclesFrontend{0, 7, 0, 0, "stalled-cycles-frontend"};
inline constexpr EventType kStalledCyclesBackend{0, 8, 0, 0, "stalled-cycles-backend"};
inline constexpr EventType kRefCycles{0, 9, 0, 0, "ref-cycles"};

// PERF_TYPE_SOFTWARE (enum perf_sw_ids). The clocks count nanoseconds.
inline constexpr EventType kCpuClock{1, 0, 0, 0, "cpu-clock"};
inline constexpr EventType kTaskClock{1, 1, 0, 0, "task-clock"};
inline constexpr EventType kPageFaults{1, 2, 0, 0, "page-faults"};
inline constexpr EventType kContextSwitches{1, 3, 0, 0, "context-switches"};
inline constexpr EventType kCpuMigrations{1, 4, 0, 0, "cpu-migrations"};
inline constexpr EventType kMinorFaults{1, 5, 0, 0, "minor-faults"};
inline constexpr EventType kMajorFaults{1, 6, 0, 0, "major-faults"};
inline constexpr EventType kAlignmentFaults{1, 7, 0, 0, "alignment-faults"};
inline constexpr EventType kEmulationFaults{1, 8, 0, 0, "emulation-faults"};
inline constexpr EventType kDummy{1, 9, 0, 0, "dummy"};
inline constexpr EventType kBpfOutput{1, 10, 0, 0, "bpf-output"};
inline constexpr EventType kCgroupSwitches{1, 11, 0, 0, "cgroup-switches"};

// PERF_TYPE_HW_CACHE: config = cache | operation << 8 | result << 16. These are the most common ones; all others are
// available by name ("node-prefetch-misses").
inline constexpr EventType kL1DcacheLoads{3, 0x00000, 0, 0, "L1-dcache-loads"};
inline constexpr EventType kL1DcacheLoadMisses{3, 0x10000, 0, 0, "L1-dcache-load-misses"};
inline constexpr EventType kL1IcacheLoadMisses{3, 0x10001, 0, 0, "L1-icache-load-misses"};
inline constexpr EventType kLlcLoads{3, 0x00002, 0, 0, "LLC-loads"};
inline constexpr EventType kLlcLoadMisses{3, 0x10002, 0, 0, "LLC-load-misses"};
inline constexpr EventType kDtlbLoads{3, 0x00003, 0, 0, "dTLB-loads"};
inline constexpr EventType kDtlbLoadMisses{3, 0x10003, 0, 0, "dTLB-load-misses"};
inline constexpr EventType kItlbLoadMisses{3, 0x10004, 0, 0, "iTLB-load-misses"};

}  // namespace event
}  // namespace PERFKIT_NAMESPACE

#if !PERFKIT_ENABLE
#include "perfkit/off/event_spec.h"
#endif
