// A generic event names the kind of core by its PMU's number in the upper half of its config. Linux 5.10 refuses that
// with EINVAL, and an arm64 PMU of 6.1 with ENOENT (PERF_PMU_CAP_EXTENDED_HW_TYPE came later). There, only the PMU's
// own events count on one kind of core.
#include "src/event/own_event.h"

#include <array>
#include <string_view>

#include "src/event/pmu_part.h"
#include "src/sys/perf_abi.h"

namespace perfkit::event {
namespace {

struct Row {
  const EventType& generic;
  std::string_view own;
};

// The kernel's own mapping: armv8_pmuv3_perf_map (arch/arm64/kernel/perf_event.c, later drivers/perf/arm_pmuv3.c).
// Branches use the first of two events that exists, as __armv8_pmuv3_map_event does. Cache events are left out, because
// each kind of core maps them differently.
constexpr std::array kRows = {
    Row{kCycles, "cpu_cycles"},
    Row{kInstructions, "inst_retired"},
    Row{kCacheReferences, "l1d_cache"},
    Row{kCacheMisses, "l1d_cache_refill"},
    Row{kBranches, "pc_write_retired"},
    Row{kBranches, "br_retired"},
    Row{kBranchMisses, "br_mis_pred"},
    Row{kBusCycles, "bus_cycles"},
    Row{kStalledCyclesFrontend, "stall_frontend"},
    Row{kStalledCyclesBackend, "stall_backend"},
};

// Sets own_type and own_config by the file events/<name> of `pmu`. Returns false if it has no such event.
bool Fill(const Pmu& pmu, std::string_view name, EventConfig::Part& part) {
  const absl::StatusOr<std::vector<Term>> terms = SplitTerms(name, name);
  if (!terms.ok() || !LoadNamedEvent(pmu, name).ok()) return false;
  PmuPart own(name, pmu, false);
  if (!own.Apply(*terms).ok()) return false;
  part.own_type = own.part().type;
  part.own_config = own.part().config;
  return true;
}

}  // namespace

void FillOwnEvent(const Pmu& pmu, uint32_t type, uint64_t config, EventConfig::Part& part) {
  for (const Row& row : kRows) {
    if (row.generic.type == type && row.generic.config == config && Fill(pmu, row.own, part)) return;
  }
}

}  // namespace perfkit::event
