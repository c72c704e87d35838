// Expands generic and raw events over the core PMUs of this machine.
#include "src/event/generic.h"

#include "src/base/number.h"
#include "src/event/own_event.h"
#include "src/event/pmu.h"
#include "src/sys/perf_abi.h"

namespace perfkit::event {
namespace {

// Returns a part that counts on one kind of core only, with that core's CPUs: elsewhere its count does not move.
EventConfig::Part OnPmu(const Pmu& pmu, uint32_t type, uint64_t config) {
  EventConfig::Part part;
  part.type = type;
  part.config = config;
  part.pmu = pmu.name;
  part.only_cpus = pmu.cpus;
  return part;
}

// Returns true if a core PMU counts the event. The kernel itself counts software events, on all cores.
bool IsHardware(const TableEvent& event) {
  return event.category == EventCategory::kHardware || event.category == EventCategory::kCache;
}

}  // namespace

// The digits are hexadecimal with or without 0x, as in CPU manuals.
std::optional<uint64_t> ParseRaw(std::string_view name) {
  if (!name.starts_with('r')) return std::nullopt;
  name.remove_prefix(1);
  if (name.starts_with("0x")) name.remove_prefix(2);
  return base::ParseNumber(name, 16);
}

// On hybrid machines a bare PERF_TYPE_HARDWARE counts one kind of core and gives 0 on the other.
void FillTableEvent(const TableEvent& event, const EventRoots& roots, EventConfig& config) {
  config.unit = event.unit;
  config.kernel_side = event.kernel_side;
  const std::vector<Pmu> cores = IsHardware(event) ? HybridCorePmus(roots) : std::vector<Pmu>();
  for (const Pmu& core : cores) {
    config.parts.push_back(OnPmu(core, event.type.type, event.type.config | uint64_t{core.type} << kPmuTypeShift));
    FillOwnEvent(core, event.type.type, event.type.config, config.parts.back());
  }
  if (cores.empty())
    config.parts.push_back({.type = event.type.type, .config = event.type.config, .pmu = {}, .only_cpus = {}});
}

void FillType(const EventType& type, const EventRoots& roots, EventConfig& config) {
  if (const TableEvent* const known = FindTableEvent(type)) return FillTableEvent(*known, roots, config);
  // A tracepoint's number does not say whether the kernel raises it in its own code, but most are.
  config.kernel_side = type.type == sys::kTypeTracepoint;
  config.parts.push_back({.type = type.type,
                          .config = type.config,
                          .config1 = type.config1,
                          .config2 = type.config2,
                          .config3 = 0,
                          .pmu = {},
                          .only_cpus = {}});
}

// A raw code may mean different events on different kinds of core. As perf does, counts it on each kind.
void FillRaw(uint64_t raw, const EventRoots& roots, EventConfig& config) {
  const std::vector<Pmu> cores = HybridCorePmus(roots);
  for (const Pmu& core : cores) config.parts.push_back(OnPmu(core, core.type, raw));
  if (cores.empty()) config.parts.push_back({.type = sys::kTypeRaw, .config = raw, .pmu = {}, .only_cpus = {}});
}

}  // namespace perfkit::event
