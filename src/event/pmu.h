// The PMUs that the kernel describes under sysfs: their type numbers, CPUs, formats and named events.
//
// A PMU is a folder of /sys/bus/event_source/devices: `type` (perf_event_attr.type), `format/` (the bits of each term),
// `events/` (named settings of those terms), and either `cpus` (a core PMU of some CPUs) or `cpumask` (an uncore PMU,
// to be opened on these CPUs). Documentation/ABI/testing/sysfs-bus-event_source-devices-*. Reads are bounded, and a
// file that is malformed is refused with its name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "perfkit/event.h"
#include "src/event/bit_field.h"

namespace perfkit::event {

// PERF_PMU_TYPE_SHIFT (include/uapi/linux/perf_event.h, 5.13): a generic config has the number of its PMU from this bit
// on.
inline constexpr int kPmuTypeShift = 32;

struct Pmu {
  std::string name;
  std::string folder;
  uint32_t type = 0;
  bool core = false;      // Counts the work of a CPU core, for any thread on it.
  bool cpu_wide = false;  // Counts a unit of the machine: opened for a CPU, never for a thread.
  std::vector<int> cpus;  // The CPUs of a core PMU; the CPUs on which to open an uncore PMU.
};

// A file of events/, with the files that describe it.
struct NamedEvent {
  std::string terms;  // "event=0x3c,umask=0x1"
  double scale = 1.0;
  std::string unit;
};

// Returns all PMUs' names, sorted; empty if sysfs has none.
std::vector<std::string> PmuNames(const EventRoots& roots);

// Errors: NotFound if there is no such PMU; FailedPrecondition if its files are malformed; PermissionDenied if this
// user may not read them.
absl::StatusOr<Pmu> LoadPmu(const EventRoots& roots, std::string_view name);

// Returns the core PMUs of a machine with several kinds of core; empty on all others.
std::vector<Pmu> HybridCorePmus(const EventRoots& roots);

// Errors: NotFound if `pmu` has no such format or event; FailedPrecondition if the file is malformed; PermissionDenied
// if this user may not read it.
absl::StatusOr<BitField> LoadFormat(const Pmu& pmu, std::string_view name);
// Ignores letter case, as perf does.
absl::StatusOr<NamedEvent> LoadNamedEvent(const Pmu& pmu, std::string_view name);

// Return sorted names. EventNames leaves out files that only describe another event (.scale, .unit and others).
std::vector<std::string> FormatNames(const Pmu& pmu);
std::vector<std::string> EventNames(const Pmu& pmu);

}  // namespace perfkit::event
