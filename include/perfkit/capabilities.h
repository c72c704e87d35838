// What this process can count on this machine, found by trying, and the cause and the remedy of each obstacle.
//
//   fputs(perfkit::FormatCapabilities(perfkit::ProbeCapabilities()).c_str(), stdout);
//   perfkit::ListEvents([](const perfkit::EventInfo& event) { printf("%s\n", std::string(event.name).c_str()); });
//
// For start-up and diagnosis, not for hot paths: ListEvents and ProbeCapabilities open events and run small workloads.
#pragma once

#include "perfkit/detail/library_only.h"

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

// The result of trying an event here.
enum class Usability : uint8_t {
  kCounts,    // Opened, and counted the workload.
  kOpens,     // Opened, and stayed 0. No piece of the workload is certain to raise it, so that proves nothing.
  kSilent,    // Its numbers would be wrong: stayed 0 although the workload must raise it, or never got a counter.
  kRefused,   // Could not be opened.
  kNotTried,  // Exists, and this process has the rights; not opened because that takes long (tracepoints).
};
std::string_view UsabilityName(Usability usability);

// An event of this machine. A view: valid until the visitor returns.
struct EventInfo {
  std::string_view name;  // As every Open accepts it.
  // Another spelling; for kRaw, kBreakpoint, kUprobe, and a tracepoint without tracefs, the general form; or "".
  std::string_view alias;
  EventCategory category = EventCategory::kHardware;
  std::string_view unit;       // Of one count: "ns", "Joules"; or "".
  std::string_view group;      // The PMU, or the tracepoint's group; or "".
  std::string_view raised_by;  // The piece of the workload that must raise it: "page touches"; "" if none must.
  Usability usability = Usability::kNotTried;
  absl::Status usable;           // OK for kCounts, kOpens and kNotTried; else the reason, with its remedy.
  std::string cause;             // The reason in a few words, for tables; "" if the event is usable.
  uint64_t value = 0;            // Its count of the workload.
  std::optional<ReadPath> path;  // How a set on this thread reads it; nullopt if it was not opened.
};

struct ListOptions {
  // Lists these only; empty means all.
  std::vector<EventCategory> categories{};
  // Also opens and counts tracepoints. There are thousands, and the kernel takes 36 ms for each: about a minute in all.
  bool probe_tracepoints = false;
  // Called before each tracepoint is opened, with the number of finished ones and the number of all.
  std::function<void(size_t done, size_t all)> progress{};
  EventRoots roots{};
};

// Calls `visit` with each event that has a name here, in the order of EventCategory. Adds one example each of raw
// events (x86-64 and arm64 only), breakpoints and uprobes (if the file of this code is found), and if tracefs is out of
// reach, one of tracepoints with the reason. Opens each event on this thread (cpu-wide ones on their CPUs) and counts a
// workload of about 1 ms: a loop, page touches, memory reads, a sleep, system calls, writes to a word, calls of a
// function, allocations. Thread-safe; calls `visit` and `progress` on the calling thread. Takes 0.1 s without
// tracepoints on a machine without a PMU, and about 1 ms more for each PMU event. Allocates.
void ListEvents(absl::FunctionRef<void(const EventInfo&)> visit, const ListOptions& options = {});

// A capability. The order is the order of reports: those that others depend on come first.
enum class CapabilityId : uint8_t {
  kPerf,            // Any use of perf_event_open.
  kPmu,             // Hardware counters.
  kUserReads,       // Reading them without a system call (rdpmc, mrs).
  kKernelCounting,  // Counting the kernel's work on a thread's behalf.
  kCpuWide,         // Counting whole CPUs.
  kOtherUsers,      // Counting other users' tasks.
  kTracepoints,
  kUprobes,
  kBreakpoints,
  kSwitchRecords,    // A record at each context switch, from which an ordinary user's switches are counted.
  kRingMemory,       // Memory that this user may lock for rings.
  kDescriptors,      // File descriptors that this process may open.
  kSigtrap,          // A signal at the sampled instruction (Linux 5.13).
  kInheritThread,    // Inheritance by threads but not by children (Linux 5.13).
  kFormatLost,       // Exact counts of lost samples (Linux 6.0).
  kPreciseSampling,  // Samples without skid.
  kBranchStacks,
  kRseq,  // The CPU number without a system call.
};

enum class CapabilityState : uint8_t {
  kPresent,
  kMissing,
  kUntried,  // There was nothing here to try it on.
};

// One capability, and the result of trying it.
struct Capability {
  CapabilityId id{};
  std::string_view name;   // Static: "hardware counters".
  std::string_view probe;  // Static: how it was tried.
  CapabilityState state = CapabilityState::kUntried;
  std::string found;    // If present: what there is ("4 at once"); if untried: why.
  std::string cause;    // If missing: why.
  std::string remedy;   // If missing: what to do about it.
  absl::Status status;  // If missing: the system's answer.
};

struct Capabilities {
  std::vector<Capability> rows;    // One for each CapabilityId, in its order.
  std::vector<std::string> hints;  // Facts about this machine that explain the rest: a container, a virtual machine.

  const Capability& of(CapabilityId id) const { return rows[static_cast<size_t>(id)]; }
  bool has(CapabilityId id) const { return of(id).state == CapabilityState::kPresent; }
};

// Tries everything, in about 0.1 s. Briefly takes all the ring memory that this user may lock, up to about 4,096 pages
// (16 MiB with pages of 4 KiB); leaves nothing open. Thread-safe. The result holds for this process with its current
// rights and limits.
Capabilities ProbeCapabilities();

// Returns a table of all capabilities, then each missing one with its cause and its remedy, then the hints.
std::string FormatCapabilities(const Capabilities& capabilities);

}  // namespace perfkit
