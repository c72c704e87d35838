// Top-down analysis, level 1: each CPU's published formulas.
//
//   Intel     arch/x86/events/intel/core.c (Linux 5.10 on): slots and topdown-*, one register of fractions that the
//             kernel multiplies by slots; tools/perf/pmu-events/arch/x86/alderlake/adl-metrics.json: each by their sum
//   AMD       the tables "Guidance for Pipeline Utilization Analysis Statistics" of AMD's Processor Programming
//             References; tools/perf/pmu-events/arch/x86/amdzen4/pipeline.json and amdzen5/pipeline.json have the same
//   Neoverse  Arm's telemetry-solution, and tools/perf/pmu-events/arch/arm64/arm/neoverse-v1/metrics.json and
//             neoverse-n2-v2/metrics.json
//
// A CPU that is not in these tables gets a reason, never another CPU's formula.
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "src/base/number.h"
#include "src/base/text.h"
#include "src/count/metric/set.h"
#include "src/sys/files.h"

namespace perfkit::count {
namespace {

absl::Status Unavailable(std::string_view why) {
  return absl::UnavailableError(absl::StrFormat("metrics 'topdown-l1': %s", why));
}

bool HasEvents(const event::Pmu& pmu, std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    if (!event::LoadNamedEvent(pmu, name).ok()) return false;
  }
  return true;
}

// The kernel requires that slots lead the group of the others (intel_pmu_hw_config).
MetricTexts IntelTexts(const std::string& pmu) {
  const auto event = [&](const char* name) { return absl::StrFormat("%s/%s/", pmu, name); };
  const std::string retiring = event("topdown-retiring"), bad = event("topdown-bad-spec"),
                    frontend = event("topdown-fe-bound"), backend = event("topdown-be-bound");
  const std::string sum = absl::StrFormat("(%s + %s + %s + %s)", retiring, bad, frontend, backend);
  const auto part = [&](const char* name, const std::string& of) {
    return absl::StrFormat("%s = 100 * %s / %s [%% of slots]", name, of, sum);
  };
  return {absl::StrFormat("{%s,%s,%s,%s,%s}", event("slots"), retiring, bad, frontend, backend),
          {part("retiring", retiring), part("bad-speculation", bad), part("frontend-bound", frontend),
           part("backend-bound", backend)}};
}

// Returns the value of `key` in /proc/cpuinfo, of its first processor.
std::string CpuInfo(const EventRoots& roots, std::string_view key) {
  const absl::StatusOr<std::string> text = sys::ReadFile(roots.proc + "/cpuinfo");
  std::string value;
  if (!text.ok()) return value;
  base::ForEachPiece(*text, '\n', [&](std::string_view line) {
    const auto [name, rest] = base::Cut(line, ':');
    if (value.empty() && base::Trim(name) == key) value = base::Trim(rest);
  });
  return value;
}

// Returns how many operations a Zen core dispatches in a cycle; nullopt for cores without these events (before Zen 4)
// or without a published formula. Models as in arch/x86/kernel/cpu/amd.c (bsp_init_amd).
std::optional<int> ZenWidth(const EventRoots& roots) {
  const std::optional<int> family = base::ParseNumber<int>(CpuInfo(roots, "cpu family"));
  const std::optional<int> model = base::ParseNumber<int>(CpuInfo(roots, "model"));
  if (!family || !model) return std::nullopt;
  const auto in = [&](int first, int last) { return *model >= first && *model <= last; };
  if (*family == 0x19 && (in(0x10, 0x1f) || in(0x60, 0x7f) || in(0xa0, 0xaf))) return 6;  // Zen 4
  if (*family == 0x1a && (in(0x00, 0x2f) || in(0x40, 0x4f) || in(0x60, 0x7f))) return 8;  // Zen 5
  return std::nullopt;
}

// Two groups, because one of six would never fit beside the NMI watchdog, which takes one of the six counters.
MetricTexts ZenTexts(int width) {
  const std::string frontend = "cpu/event=0x1a0,umask=0x01/",  // de_no_dispatch_per_slot.no_ops_from_frontend
      backend = "cpu/event=0x1a0,umask=0x1e/",                 // de_no_dispatch_per_slot.backend_stalls
      contention = "cpu/event=0x1a0,umask=0x60/",              // de_no_dispatch_per_slot.smt_contention
      dispatched = "cpu/event=0xaa,umask=0x07/",               // de_src_op_disp.all
      retired = "cpu/event=0xc1/";                             // ex_ret_ops
  const auto part = [&](const char* name, const std::string& of) {
    return absl::StrFormat("%s = 100 * %s / (%d * cycles) [%% of slots]", name, of, width);
  };
  return {absl::StrFormat("{cycles,%s,%s,%s},{%s,%s}", frontend, backend, contention, dispatched, retired),
          {part("retiring", retired), part("bad-speculation", absl::StrFormat("(%s - %s)", dispatched, retired)),
           part("frontend-bound", frontend), part("backend-bound", backend), part("smt-contention", contention)}};
}

// The parts of Arm's MIDR_EL1 that name a core, and its revision.
struct Midr {
  uint64_t bits = 0;
  uint64_t core() const { return bits & 0xff00fff0; }
  uint64_t revision() const { return (bits >> 20 & 0xf) << 4 | (bits & 0xf); }  // 0x03: r0p3
};

// The differences between the formulas of Neoverse cores. A mispredicted branch costs some cycles of slots, which the
// events count as stalls of the frontend and the backend.
struct Neoverse {
  uint64_t core;
  const char* name;
  int frontend_cycles, backend_cycles;  // Stalls that a mispredicted branch causes.
  uint64_t first_right_revision;        // Before it, a stall of the frontend counts once more in each cycle.
};
constexpr Neoverse kNeoverse[] = {
    {0x4100d400, "V1", 4, 0, 0},
    {0x4100d490, "N2", 1, 3, 0x03},
    {0x4100d4f0, "V2", 1, 3, 0},
};

// Returns the number in file `path`, "0x...".
std::optional<uint64_t> NumberIn(const std::string& path) {
  const absl::StatusOr<std::string> text = sys::ReadFile(path);
  return text.ok() ? base::ParsePrefixed(base::Trim(*text)) : std::nullopt;
}

MetricTexts NeoverseTexts(const std::string& pmu, const Neoverse& core, uint64_t slots, bool counts_once_more) {
  const auto event = [&](const char* name) { return absl::StrFormat("%s/%s/", pmu, name); };
  const std::string frontend = event("stall_slot_frontend"), backend = event("stall_slot_backend"),
                    stalled = event("stall_slot"), retired = event("op_retired"), issued = event("op_spec"),
                    mispredicted = event("br_mis_pred");
  const char* const once_more = counts_once_more ? " - cycles" : "";
  const auto flushed = [&](int cycles) { return absl::StrFormat("%d * %s / cycles", cycles, mispredicted); };
  const std::string all = absl::StrFormat("(%d * cycles)", slots);
  const std::string used = absl::StrFormat("(1 - (%s%s) / %s)", stalled, once_more, all);
  return {absl::StrFormat("{cycles,%s,%s,%s},{%s,%s,%s}", frontend, backend, stalled, retired, issued, mispredicted),
          {absl::StrFormat("retiring = 100 * %s / %s * %s [%% of slots]", retired, issued, used),
           absl::StrFormat("bad-speculation = 100 * ((1 - %s / %s) * %s + %s) [%% of slots]", retired, issued, used,
                           flushed(core.frontend_cycles + core.backend_cycles)),
           absl::StrFormat("frontend-bound = 100 * ((%s%s) / %s - %s) [%% of slots]", frontend, once_more, all,
                           flushed(core.frontend_cycles)),
           absl::StrFormat("backend-bound = 100 * (%s / %s - %s) [%% of slots]", backend, all,
                           flushed(core.backend_cycles))}};
}

absl::StatusOr<MetricTexts> ArmTexts(const std::vector<event::Pmu>& cores, const EventRoots& roots) {
  if (cores.size() > 1) return Unavailable("this machine has several kinds of core");
  const std::optional<uint64_t> midr = NumberIn(roots.sysfs + "/devices/system/cpu/cpu0/regs/identification/midr_el1");
  if (!midr) return Unavailable("sysfs does not say which core this is (midr_el1)");
  for (const Neoverse& core : kNeoverse) {
    if (core.core != Midr{*midr}.core()) continue;
    if (!HasEvents(cores[0], {"stall_slot", "stall_slot_frontend", "stall_slot_backend", "op_retired", "op_spec",
                              "br_mis_pred"})) {
      return Unavailable(
          absl::StrFormat("the PMU of this Neoverse %s does not offer all of its events here", core.name));
    }
    const std::optional<uint64_t> slots = NumberIn(cores[0].folder + "/caps/slots");
    if (!slots || *slots == 0 || *slots > 64) return Unavailable("the PMU does not say how many slots it has");
    return NeoverseTexts(cores[0].name, core, *slots, Midr{*midr}.revision() < core.first_right_revision);
  }
  return Unavailable(absl::StrFormat("there is no published formula for this core (midr_el1 0x%08x)", *midr));
}

}  // namespace

absl::StatusOr<MetricTexts> TopdownLevel1(const std::vector<event::Pmu>& cores, const EventRoots& roots) {
  for (const event::Pmu& pmu : cores) {
    if (HasEvents(pmu, {"slots", "topdown-retiring", "topdown-bad-spec", "topdown-fe-bound", "topdown-be-bound"})) {
      return IntelTexts(pmu.name);
    }
    if (HasEvents(pmu, {"topdown-total-slots"})) {
      return Unavailable("this CPU counts slots of a core for both of its threads together");
    }
  }
  if (cores[0].name.starts_with("armv8")) return ArmTexts(cores, roots);
  if (CpuInfo(roots, "vendor_id") == "AuthenticAMD") {
    if (const std::optional<int> width = ZenWidth(roots)) return ZenTexts(*width);
  }
  return Unavailable("this CPU has no events for it, or there is no published formula");
}

}  // namespace perfkit::count
