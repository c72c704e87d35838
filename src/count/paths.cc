// The table of paths. The reason for each: docs/design.md, "each number by its cheapest truthful path".
#include "src/count/paths.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>

#include "absl/strings/str_format.h"
#include "src/count/usage.h"
#include "src/event/event_table.h"
#include "src/event/tracepoint.h"
#include "src/sys/perf_abi.h"

namespace perfkit::count {
namespace {

using enum ReadPath;

constexpr std::array kThreadClockPaths = {kThreadClock, kGroupRead, kUsage};
constexpr std::array kFaultPaths = {kRing, kGroupRead, kUsage};
constexpr std::array kMigrationPaths = {kRing, kThreadClock, kGroupRead};
constexpr std::array kTracepointPaths = {kRing, kGroupRead};
constexpr std::array kHardwarePaths = {kUserPage, kGroupRead};
constexpr std::array kKernelPaths = {kGroupRead};
constexpr std::array kAllocationPaths = {kWrappedMalloc};
constexpr std::array kIoPaths = {kThreadIo};

// Returns true if the machine counts the hypervisor's part of `event` apart: x86 has no such mode, nor have software
// events.
bool KnowsHypervisor([[maybe_unused]] const EventConfig& event) {
#if defined(__x86_64__)
  return false;
#else
  return CanMultiplex(event) && event.breakpoint_kind == 0;
#endif
}

absl::Status Refuse(const EventConfig& event, std::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrFormat("event '%s': %s. Remedy: leave the modifier out.", event.name, why));
}

// Returns false for events with modifiers that a ring cannot honour, because they concern scheduling on counters, and
// for those of which the kernel counts several at once: with a period of 1 it would throttle them.
bool IsPlain(const EventConfig& event) {
  return event.parts.size() == 1 && !event.pinned && !event.exclusive && event.breakpoint_kind == 0 &&
         event.probe_path.empty() && !event::MayCountWeight(event);
}

std::span<const ReadPath> SoftwarePaths(uint64_t config) {
  switch (config) {
    case sys::kSwTaskClock: return kThreadClockPaths;
    case sys::kSwPageFaults:
    case sys::kSwPageFaultsMin:
    case sys::kSwPageFaultsMaj:
    case sys::kSwContextSwitches: return kFaultPaths;
    case sys::kSwCpuMigrations: return kMigrationPaths;
    default: return kKernelPaths;
  }
}

// Events that only Measure knows are left to the kernel, which refuses them.
std::span<const ReadPath> PathsWithoutPerf(uint64_t config) {
  if (config == event::kAllocations.config || config == event::kAllocatedBytes.config) return kAllocationPaths;
  if (config == event::kReadBytes.config || config == event::kWrittenBytes.config) return kIoPaths;
  return kKernelPaths;
}

bool HasModifiers(const EventConfig& event) {
  return event.privilege_given || event.exclude_host || event.exclude_guest || event.exclude_idle || event.pinned ||
         event.exclusive || event.precise != 0 || event.precise_max;
}

}  // namespace

bool IsSoftware(const EventConfig& event, uint64_t config) {
  return event.parts.size() == 1 && event.parts[0].type == sys::kTypeSoftware && event.parts[0].config == config;
}

bool CanBeUserOnly(const EventConfig& event) {
  return !event.kernel_side && !event::IsWithoutPerf(event) && !IsSoftware(event, sys::kSwTaskClock) &&
         !IsSoftware(event, sys::kSwCpuClock);
}

// "event=0x00,umask=0x4" of a core PMU (arch/x86/events/intel/core.c). AMD's event of that number only gets a slower
// path by this.
bool IsSlots(const EventConfig& event) {
  constexpr uint64_t kSlots = 0x400;
  if (event.parts.size() != 1 || event.parts[0].config != kSlots) return false;
  const EventConfig::Part& part = event.parts[0];
  return part.type == sys::kTypeRaw || part.pmu == "cpu" || part.pmu == "cpu_core";
}

// The unit is the kernel's own (events/<name>.unit of the PMUs power and power_core: arch/x86/events/rapl.c).
bool IsEnergy(const EventConfig& event) { return event.cpu_wide_only && event.unit == "Joules"; }

bool CanMultiplex(const EventConfig& event) {
  if (IsEnergy(event)) return false;
  const auto needs_no_counter = [](const EventConfig::Part& part) {
    return part.type == sys::kTypeSoftware || part.type == sys::kTypeTracepoint || part.type == kMeasuredType;
  };
  return !std::ranges::all_of(event.parts, needs_no_counter);
}

absl::Status CheckModifiers(const EventConfig& event) {
  if (event::IsWithoutPerf(event) && HasModifiers(event)) {
    return Refuse(event, "perf does not count it, so that no modifier of perf changes what is counted");
  }
  if (event.kernel_side && event.exclude_kernel) {
    return Refuse(event, "the kernel raises it in its own code, so that in user space only it would count 0 for ever");
  }
  const bool is_clock = IsSoftware(event, sys::kSwTaskClock) || IsSoftware(event, sys::kSwCpuClock);
  if (is_clock && (event.exclude_user || event.exclude_kernel)) {
    return Refuse(event, "the clock runs in user space and in the kernel alike, and has no number of the one alone");
  }
  if (event.exclude_user && event.exclude_kernel && !KnowsHypervisor(event)) {
    return Refuse(event, "this machine does not tell what the hypervisor does, and it would count 0 for ever");
  }
  if (event.exclude_host && !CanMultiplex(event)) {
    return Refuse(event, "the kernel counts it without a look at guests, so that the host's would be in it");
  }
  return absl::OkStatus();
}

bool CountTheSame(const EventConfig& a, const EventConfig& b) {
  const auto modifiers = [](const EventConfig& e) {
    return std::tie(e.exclude_user, e.exclude_kernel, e.exclude_hv, e.exclude_host, e.exclude_guest, e.exclude_idle,
                    e.pinned, e.exclusive, e.precise, e.precise_max, e.privilege_given, e.breakpoint_kind,
                    e.probe_path);
  };
  return a.parts == b.parts && modifiers(a) == modifiers(b);
}

RingKind RingKindOf(const EventConfig& event) {
  return IsSoftware(event, sys::kSwContextSwitches) ? RingKind::kSwitches : RingKind::kPeriodOne;
}

std::span<const ReadPath> PathsFor(const EventConfig& event, const Target& target) {
  if (event::IsWithoutPerf(event)) return PathsWithoutPerf(event.parts[0].config);
  const bool own_thread = target.kind == Target::Kind::kThisThread && !target.enable_on_exec;
  if (!own_thread || !IsPlain(event) || event.cpu_wide_only) return kKernelPaths;
  switch (event.parts[0].type) {
    case sys::kTypeSoftware: return SoftwarePaths(event.parts[0].config);
    case sys::kTypeTracepoint: return kTracepointPaths;
    case sys::kTypeBreakpoint: return kKernelPaths;
    // With its metrics, each read by the kernel sets the register back to 0 (icl_update_topdown_event in
    // arch/x86/events/intel/core.c), and the metrics' register has fractions of it.
    default: return IsSlots(event) ? std::span<const ReadPath>(kKernelPaths) : kHardwarePaths;
  }
}

}  // namespace perfkit::count
