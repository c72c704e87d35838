// Parses names of events into what perf_event_open takes.
//
// Accepts what perf's own tools accept, with perf's spelling (man perf-list), except patterns (sched:*), events of the
// perf tool itself (duration_time, user_time, system_time), BPF, and terms of generic events other than name=:
//   cycles  L1-dcache-load-misses  page-faults        the table of generic events, with aliases
//   r01c0                                             a raw event of the core PMU
//   cpu/event=0x3c,umask=1/  msr/tsc/  power/energy-pkg/   any PMU under sysfs: its formats and its named events
//   sched:sched_switch                                a tracepoint
//   mem:0x601040/8:rw                                 a hardware breakpoint
//   uprobe:/lib/x.so:malloc  uprobe:/lib/x.so+0x1234  a function's entry in a file; uretprobe: its return
//   uprobe:libc.so.6:malloc                           the same; without '/', a file that this process has mapped
//   {cycles,instructions}:u                           a group: counted together or not at all
// each with modifiers after a colon: u k h (user, kernel, hypervisor only) G H (guest, host only) I (not idle)
// p pp ppp P (precise) D (pinned) S (sample read) W (weak group) e (exclusive).
#pragma once

#include "perfkit/detail/library_only.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "perfkit/event_type.h"

namespace perfkit {

// An event, resolved against this machine: the parts of perf_event_attr that its name decides.
struct EventConfig {
  // One perf event to open. Most events have one part. On a hybrid CPU a generic hardware event has one for each core
  // PMU, and its count is their sum.
  struct Part {
    uint32_t type = 0;
    uint64_t config = 0;
    uint64_t config1 = 0;  // Also the address of a breakpoint.
    uint64_t config2 = 0;  // Also the length of a breakpoint, and the offset of a probe.
    uint64_t config3 = 0;
    std::string pmu{};  // The PMU's name in sysfs, for messages; "" for generic events.
    // The CPUs of a core PMU, or the CPUs on which an uncore PMU must be opened; empty means any.
    std::vector<int> only_cpus{};
    // For a generic event on one kind of core: the same event of that core's own PMU, for kernels that accept no PMU
    // number in a generic event (arm64 up to 6.1 at least). Type 0: the PMU has no such event.
    uint32_t own_type = 0;
    uint64_t own_config = 0;

    friend bool operator==(const Part&, const Part&) = default;
  };

  std::string name{};  // As it was written.
  std::vector<Part> parts{};

  // Modifiers.
  bool exclude_user = false, exclude_kernel = false, exclude_hv = false, exclude_host = false, exclude_guest = false;
  bool exclude_idle = false, pinned = false, exclusive = false, sample_read = false, weak_group = false;
  uint8_t precise = 0;           // 0 to 3: perf_event_attr.precise_ip.
  bool precise_max = false;      // 'P': as precise as the PMU permits.
  bool privilege_given = false;  // True if any of u k h was written: perfkit must not restrict the event further.

  uint32_t breakpoint_kind = 0;  // HW_BREAKPOINT_*; 0 if it is no breakpoint.
  std::string probe_path{};      // The file of a uprobe; "" if it is no uprobe.

  // A count times `scale` is in `unit`: the files .scale and .unit of sysfs; "ns" for clocks, "" for plain counts.
  double scale = 1.0;
  std::string unit{};

  // The kernel raises this event in its own code (context-switches, cpu-migrations, most tracepoints). With
  // exclude_kernel it would always count 0, so Sampler::Open and CounterSet::Open refuse that with InvalidArgument.
  // Without CounterOptions::require_all, CounterSet::reason(i) has this error instead.
  bool kernel_side = false;
  // Counts a unit of the machine (uncore, power), not a thread: it requires Target::Cpu or Target::System. Energy (in
  // Joules) may also be in a set of Target::ThisThread, and is then that of the whole machine.
  bool cpu_wide_only = false;
};

// Where the kernel shows its event descriptions. Tests use copies of other machines' trees.
struct EventRoots {
  std::string sysfs = "/sys";
  std::string tracefs{};  // "" means that proc's mounts say where it is.
  std::string proc = "/proc";
};

// Parses one event. Thread-safe. Not for hot paths: reads sysfs.
// Errors: InvalidArgument with the mistake, its position and the nearest real names; NotFound for a well-formed name of
// something that this machine lacks; PermissionDenied for a tracepoint that this user may not look up;
// FailedPrecondition if a file of the kernel is malformed.
absl::StatusOr<EventConfig> ParseEvent(std::string_view text, const EventRoots& roots = {});

// Parses events separated by commas, with groups in braces. Returns one inner vector for each group, and for each event
// without a group; the events of a group are counted together. Errors: as ParseEvent.
absl::StatusOr<std::vector<std::vector<EventConfig>>> ParseEventList(std::string_view text,
                                                                     const EventRoots& roots = {});

// Splits a list for ParseEventList into its events and groups. Each of them is a list for ParseEventList again, so that
// an event that this machine lacks does not make the others fail. Errors: InvalidArgument for a misplaced brace or
// comma.
absl::StatusOr<std::vector<std::string>> SplitEventList(std::string_view text);

// Resolves `spec`: parses its text, or checks and completes its constant. Errors: as ParseEvent.
absl::StatusOr<EventConfig> ResolveEvent(const EventSpec& spec, const EventRoots& roots = {});

}  // namespace perfkit
