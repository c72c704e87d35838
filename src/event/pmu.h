// The PMUs that the kernel describes under sysfs: their type numbers, CPUs, formats and named events.
//
// A PMU is a folder of /sys/bus/event_source/devices: `type` (perf_event_attr.type), `format/` (where a term's bits
// go), `events/` (named settings of those terms), and either `cpus` (a core PMU that some CPUs have) or `cpumask` (an
// uncore PMU, to be opened on these CPUs). Documentation/ABI/testing/sysfs-bus-event_source-devices-*.
// All files are read as hostile: bounded, and refused with the file's name when they make no sense.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "perfkit/event.h"
#include "src/event/bit_field.h"

namespace perfkit::event {

// PERF_PMU_TYPE_SHIFT (include/uapi/linux/perf_event.h, 5.13): the PMU that a generic config is meant for.
inline constexpr int kPmuTypeShift = 32;

struct Pmu {
  std::string name;
  std::string folder;
  uint32_t type = 0;
  bool core = false;      // counts what a CPU core does, for any thread on it
  bool cpu_wide = false;  // counts a place: opened for a CPU, never for a thread
  std::vector<int> cpus;  // of a core PMU: the CPUs that have it; of an uncore PMU: where to open it
};

// A file of events/, with what stands beside it.
struct NamedEvent {
  std::string terms;  // "event=0x3c,umask=0x1"
  double scale = 1.0;
  std::string unit;
};

// All PMUs' names, sorted; empty when sysfs has none.
std::vector<std::string> PmuNames(const EventRoots& roots);

// NotFound when there is no such PMU; FailedPrecondition when its files make no sense.
absl::StatusOr<Pmu> LoadPmu(const EventRoots& roots, std::string_view name);

// The core PMUs of a machine that has several kinds of core; empty on all others.
std::vector<Pmu> HybridCorePmus(const EventRoots& roots);

// NotFound when `pmu` has no such format or event; FailedPrecondition when the file makes no sense.
absl::StatusOr<BitField> LoadFormat(const Pmu& pmu, std::string_view name);
// The name's letter case is free, as perf's is.
absl::StatusOr<NamedEvent> LoadNamedEvent(const Pmu& pmu, std::string_view name);

// Sorted names. EventNames leaves out what only describes another event (.scale, .unit and the like).
std::vector<std::string> FormatNames(const Pmu& pmu);
std::vector<std::string> EventNames(const Pmu& pmu);

}  // namespace perfkit::event
