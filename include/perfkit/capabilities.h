// What this process can count on this machine, and what stands in the way: found by trying, told with the remedy.
//
//   fputs(perfkit::FormatCapabilities(perfkit::ProbeCapabilities()).c_str(), stdout);
//   perfkit::ListEvents([](const perfkit::EventInfo& event) { printf("%s\n", std::string(event.name).c_str()); });
//
// For start-up and diagnosis, not for hot paths: everything here opens events and runs work of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "perfkit/count.h"
#include "perfkit/event.h"
#include "perfkit/event_type.h"

namespace perfkit {

// How far an event got here.
enum class Usability : uint8_t {
  kCounts,    // opened, and a known piece of work moved it
  kOpens,     // opened; nothing that was done here is sure to move it, and nothing did
  kSilent,    // opened, and stayed 0 although the work must move it: its numbers would be lies
  kRefused,   // could not be opened
  kNotTried,  // exists, and this process has the rights; not opened because that costs time (tracepoints)
};
std::string_view UsabilityName(Usability usability);

// An event of this machine. The views die when the visitor returns.
struct EventInfo {
  std::string_view name;  // as every Open takes it
  std::string_view
      alias;  // another spelling, or for kRaw, kBreakpoint and kUprobe the form that `name` is one of; or ""
  EventCategory category = EventCategory::kHardware;
  std::string_view unit;      // of one count: "ns", "Joules"; or ""
  std::string_view group;     // the PMU, or the tracepoint's group; or ""
  std::string_view moved_by;  // the piece of work that must move it: "page touches"; "" when none is sure to
  Usability usability = Usability::kNotTried;
  absl::Status usable;           // OK for kCounts, kOpens and kNotTried; else the reason, with its remedy
  std::string cause;             // the reason in a few words, for tables; "" when usable
  uint64_t value = 0;            // what it counted of the work
  std::optional<ReadPath> path;  // how a set on this thread reads it; nothing when it was not opened
};

struct ListOptions {
  // Only these; empty: all.
  std::vector<EventCategory> categories{};
  // Open and count tracepoints too. There are thousands, and the kernel takes 36 ms for each: about a minute in all.
  bool probe_tracepoints = false;
  // Called before each tracepoint that is opened, with how many are done and how many there are.
  std::function<void(size_t done, size_t all)> progress{};
  EventRoots roots{};
};

// Calls `visit` with each event that has a name here, in the order of EventCategory, and with one example each of raw
// events, breakpoints and uprobes; where tracefs is out of reach, also of tracepoints, with the reason. Every event is
// opened on this thread (those that count a place: on the CPUs) and has to count a workload of about 1 ms: a loop, page
// touches, memory reads, a sleep, system calls. Takes 0.1 s without tracepoints on a machine without a PMU, about 1 ms
// more for each PMU event.
void ListEvents(absl::FunctionRef<void(const EventInfo&)> visit, const ListOptions& options = {});

// What can be asked for. The order is the order of reports: what others need comes first.
enum class CapabilityId : uint8_t {
  kPerf,            // perf_event_open at all
  kPmu,             // hardware counters
  kUserReads,       // reading them without a system call (rdpmc, mrs)
  kKernelCounting,  // counting what the kernel does on a thread's behalf
  kCpuWide,         // whole CPUs, whatever runs there
  kOtherUsers,      // other users' tasks
  kTracepoints,
  kUprobes,
  kBreakpoints,
  kSwitchRecords,  // a record at each context switch: what ordinary users' switch counts are made of
  kRingMemory,     // memory that this user may lock for rings
  kDescriptors,
  kSigtrap,          // a signal at the sampled instruction (Linux 5.13)
  kInheritThread,    // inheriting to threads but not to children (Linux 5.13)
  kFormatLost,       // exact counts of lost samples (Linux 6.0)
  kPreciseSampling,  // samples without skid
  kBranchStacks,
  kRseq,  // the CPU number without a system call
};

enum class CapabilityState : uint8_t {
  kPresent,
  kMissing,
  kUntried,  // there was nothing here to try it on
};

// One capability, as it was found.
struct Capability {
  CapabilityId id{};
  std::string_view name;   // static: "hardware counters"
  std::string_view probe;  // static: how it was tried
  CapabilityState state = CapabilityState::kUntried;
  std::string found;    // present: what there is ("4 at once"); untried: why
  std::string cause;    // missing: why, here
  std::string remedy;   // missing: what to do about it
  absl::Status status;  // missing: what the system said
};

struct Capabilities {
  std::vector<Capability> rows;    // one for each CapabilityId, in its order
  std::vector<std::string> hints;  // what this machine is, where it explains the rest: a container, a virtual machine

  const Capability& of(CapabilityId id) const { return rows[static_cast<size_t>(id)]; }
  bool has(CapabilityId id) const { return of(id).state == CapabilityState::kPresent; }
};

// Tries everything, in about 0.1 s. Takes all the ring memory that this user may lock, up to 16 MiB, for a moment;
// leaves nothing open. Any thread; what it finds holds for this process, with its rights and limits of now.
Capabilities ProbeCapabilities();

// A table: what is there, then each obstacle with its cause and its remedy, then the hints.
std::string FormatCapabilities(const Capabilities& capabilities);

}  // namespace perfkit
