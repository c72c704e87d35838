// The table of paths. Why each holds: docs/design.md, "each number by its cheapest truthful path".
#include "src/count/paths.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "src/count/usage.h"
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

// Modifiers that a ring cannot honour: they are about scheduling on counters.
bool IsPlain(const EventConfig& event) {
  return event.parts.size() == 1 && !event.pinned && !event.exclusive && event.breakpoint_kind == 0 &&
         event.probe_path.empty();
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

}  // namespace

bool IsSoftware(const EventConfig& event, uint64_t config) {
  return event.parts.size() == 1 && event.parts[0].type == sys::kTypeSoftware && event.parts[0].config == config;
}

bool CanMultiplex(const EventConfig& event) {
  const auto needs_no_counter = [](const EventConfig::Part& part) {
    return part.type == sys::kTypeSoftware || part.type == sys::kTypeTracepoint;
  };
  return !std::ranges::all_of(event.parts, needs_no_counter);
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
  if (target.kind != Target::Kind::kThisThread || target.enable_on_exec || !IsPlain(event)) return kKernelPaths;
  switch (event.parts[0].type) {
    case sys::kTypeSoftware: return SoftwarePaths(event.parts[0].config);
    case sys::kTypeTracepoint: return kTracepointPaths;
    case sys::kTypeBreakpoint: return kKernelPaths;
    default: return kHardwarePaths;
  }
}

}  // namespace perfkit::count
