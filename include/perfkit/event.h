// Names to events: parses what people write into what perf_event_open takes.
//
// Everything that perf's own tools accept is accepted here, with perf's spelling (man perf-list):
//   cycles  L1-dcache-load-misses  page-faults        the table of generic events, with aliases
//   r01c0                                             a raw event of the core PMU
//   cpu/event=0x3c,umask=1/  msr/tsc/  power/energy-pkg/   any PMU under sysfs: its formats and its named events
//   sched:sched_switch                                a tracepoint
//   mem:0x601040/8:rw                                 a hardware breakpoint
//   uprobe:/lib/x.so:malloc  uprobe:/lib/x.so+0x1234  a function's entry in a file; uretprobe: its return
//   {cycles,instructions}:u                           a group: counted together or not at all
// each with modifiers after a colon: u k h (user, kernel, hypervisor only) G H (guest, host only) I (not idle)
// p pp ppp P (precise) D (pinned) S (sample read) W (weak group) e (exclusive).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "perfkit/event_type.h"

namespace perfkit {

// An event, resolved against this machine: the parts of perf_event_attr that its name decides.
struct EventConfig {
  // One perf event to open. Most events have one part; on a hybrid CPU a generic hardware event has one for each
  // core PMU, and its count is their sum.
  struct Part {
    uint32_t type = 0;
    uint64_t config = 0;
    uint64_t config1 = 0;  // also: breakpoint address
    uint64_t config2 = 0;  // also: breakpoint length, probe offset
    uint64_t config3 = 0;
    std::string pmu{};             // the sysfs name, for messages; "" for generic events
    std::vector<int> only_cpus{};  // a core PMU's CPUs, or where an uncore PMU must be opened; empty: any
    // Of a generic event on one kind of core: the same as an event of that core's own PMU, for kernels that take no
    // PMU's number in a generic event (arm64 up to 6.1 at least). Type 0: the PMU names none.
    uint32_t own_type = 0;
    uint64_t own_config = 0;

    friend bool operator==(const Part&, const Part&) = default;
  };

  std::string name{};  // as it was written
  std::vector<Part> parts{};

  // Modifiers.
  bool exclude_user = false, exclude_kernel = false, exclude_hv = false, exclude_host = false, exclude_guest = false;
  bool exclude_idle = false, pinned = false, exclusive = false, sample_read = false, weak_group = false;
  uint8_t precise = 0;           // 0..3
  bool precise_max = false;      // 'P': as precise as the PMU can
  bool privilege_given = false;  // any of u k h was written: perfkit must not restrict the event further

  uint32_t breakpoint_kind = 0;  // HW_BREAKPOINT_*; 0: not a breakpoint
  std::string probe_path{};      // the file of a uprobe; "": not a uprobe

  // What one count stands for: the value times `scale` is in `unit` (".scale", ".unit" of sysfs; "ns" for clocks).
  double scale = 1.0;
  std::string unit{};

  // The kernel raises this event in its own code (context-switches, cpu-migrations, most tracepoints): opened with
  // exclude_kernel it opens, and counts 0 for ever. perfkit refuses that instead.
  bool kernel_side = false;
  // Counts a place, not a thread: it can be opened for a CPU only (uncore, power).
  bool cpu_wide_only = false;
};

// Where the kernel shows its event descriptions. Tests point these at copies of other machines' trees.
struct EventRoots {
  std::string sysfs = "/sys";
  std::string tracefs{};  // "": wherever it is mounted, looked up in proc's mounts
  std::string proc = "/proc";
};

// One event from text. InvalidArgument: what was wrong, where, and the nearest real names. NotFound: a well-formed
// name of something that this machine has not. PermissionDenied: a tracepoint that this user may not look up.
// Not for hot paths: reads sysfs. Any thread.
absl::StatusOr<EventConfig> ParseEvent(std::string_view text, const EventRoots& roots = {});

// Events separated by commas, with groups in braces: each inner vector is counted together.
absl::StatusOr<std::vector<std::vector<EventConfig>>> ParseEventList(std::string_view text,
                                                                     const EventRoots& roots = {});

// The elements of such a list as texts, each of which ParseEventList takes alone: so that one event that this machine
// has not does not take the others with it. InvalidArgument where braces or commas make no sense.
absl::StatusOr<std::vector<std::string>> SplitEventList(std::string_view text);

// What an EventSpec stands for: its constant, checked and completed, or its parsed text.
absl::StatusOr<EventConfig> ResolveEvent(const EventSpec& spec, const EventRoots& roots = {});

}  // namespace perfkit
