// Counts by a CounterSet: the PMU and the kernel's software events; a tracepoint for system calls; a breakpoint for
// calls of one function; uprobes on the allocator's entries; the thread's io file for bytes of system calls. A number
// that was multiplexed or not counted is an error here, never an estimate: a test must not pass or fail by an estimate.
#include <dlfcn.h>
#include <sys/auxv.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/counter.h"
#include "src/measure/take.h"
#include "src/sys/perf_abi.h"

namespace perfkit::measure {
namespace {

using Parts = std::vector<std::vector<EventConfig>>;  // Events to be added up, each in its own group.

absl::Status AddParsed(std::string_view text, Parts& parts) {
  absl::StatusOr<EventConfig> event = ParseEvent(text);
  if (!event.ok()) return event.status();
  parts.push_back({*std::move(event)});
  return absl::OkStatus();
}

// Adds one uprobe for each function of the allocator, in the file that provides it to this process.
absl::Status AddAllocators(Parts& parts) {
  for (const auto& [name, code] : AllocatorEntries()) {
    const std::string file = code != nullptr ? FileOfCode(code) : "";
    if (file.empty()) {
      return absl::Status(absl::StatusCode::kUnavailable, absl::StrFormat("no loaded file has %s", name));
    }
    if (absl::Status added = AddParsed(absl::StrFormat("uprobe:%s:%s", file, name), parts); !added.ok()) {
      return added;
    }
  }
  return absl::OkStatus();
}

// Called before and after a region whose calls are counted by a breakpoint, with a breakpoint of its own. Some
// hypervisors lose the debug registers of a thread; the region's breakpoint then counts nothing, without an error.
constexpr uint64_t kWitnessed = 2;
[[gnu::noinline]] void Witness() noexcept { asm volatile(""); }

absl::Status AddCalls(const EventType& event, Parts& parts) {
  if (absl::Status added = AddParsed(absl::StrFormat("mem:0x%x:x", event.config1), parts); !added.ok()) return added;
  return AddParsed(absl::StrFormat("mem:0x%x:x", reinterpret_cast<uint64_t>(&Witness)), parts);
}

absl::Status AddParts(const EventType& event, Parts& parts) {
  if (IsAllocations(event)) return AddAllocators(parts);
  if (IsSyscalls(event)) return AddParsed("raw_syscalls:sys_enter", parts);
  if (IsCalls(event)) return AddCalls(event, parts);
  absl::StatusOr<EventConfig> resolved = ResolveEvent(event);
  if (!resolved.ok()) return resolved.status();
  parts.push_back({*std::move(resolved)});
  return absl::OkStatus();
}

// Returns text such as "perf, ring" or "perf, breakpoint, group read"; without perf, "getrusage" or "thread's io file".
std::string DescribePath(const EventType& event, const CounterSet& set) {
  const bool is_perf = set.path(0) != ReadPath::kThreadIo && set.path(0) != ReadPath::kUsage;
  if (!is_perf) return std::string(ReadPathName(set.path(0)));
  std::string_view kind = "";
  if (IsAllocations(event)) kind = "uprobes, ";
  if (IsSyscalls(event)) kind = "tracepoint, ";
  if (IsCalls(event)) kind = "breakpoint, ";
  const bool user_only = !IsSyscalls(event) && set.fixed_flags(0).has(Validity::kUserOnly);
  return absl::StrFormat("perf, %s%s%s", kind, ReadPathName(set.path(0)), user_only ? ", user's own" : "");
}

absl::StatusOr<int64_t> TakeOnce(const CounterSet& set, Body body, void* self) {
  Snapshot begin, end;
  set.Read(begin);
  body(self);
  set.Read(end);
  int64_t sum = 0;
  for (size_t i = 0; i < set.size(); ++i) {
    const Count count = set.Difference(begin, end, i);
    if (!count.validity.counted()) {
      return absl::Status(absl::StatusCode::kUnavailable, "the counter gave no number: it was not on the CPU");
    }
    if (count.coverage() < 1) {
      return absl::Status(absl::StatusCode::kUnavailable,
                          absl::StrFormat("it was counted for %.0f %% of the time only: another program uses the PMU",
                                          100 * count.coverage()));
    }
    sum += static_cast<int64_t>(count.value);
  }
  return sum;
}

// As TakeOnce, for the first of two breakpoints; the second one is on Witness. Runs the body up to four times.
absl::StatusOr<int64_t> TakeCalls(const CounterSet& set, Body body, void* self) {
  constexpr int kTries = 4;
  Snapshot begin, end;
  for (int i = 0; i < kTries; ++i) {
    set.Read(begin);
    Witness();
    body(self);
    Witness();
    set.Read(end);
    const Count calls = set.Difference(begin, end, 0), witness = set.Difference(begin, end, 1);
    const bool is_whole = calls.validity.counted() && calls.coverage() == 1 && witness.validity.counted();
    if (is_whole && witness.value == kWitnessed) return static_cast<int64_t>(calls.value);
  }
  return absl::Status(
      absl::StatusCode::kUnavailable,
      "the breakpoints were not counted all of the time, or one on a function of perfkit, called twice, "
      "did not fire twice: this machine loses breakpoints, as some hypervisors do while another program "
      "is single-stepped");
}

}  // namespace

// dladdr's name for the program is argv[0]. That is no path from here if the program was found by PATH, or has changed
// its folder.
std::string FileOfCode(const void* code) {
  Dl_info module{}, program{};
  if (::dladdr(code, &module) == 0 || module.dli_fname == nullptr) return "";
  const auto* const start = reinterpret_cast<const void*>(::getauxval(AT_ENTRY));
  const bool is_program = ::dladdr(start, &program) != 0 && program.dli_fbase == module.dli_fbase;
  return is_program ? "/proc/self/exe" : module.dli_fname;
}

absl::StatusOr<Take> OpenCounterTake(const EventType& event) {
  Parts parts;
  if (absl::Status added = AddParts(event, parts); !added.ok()) return added;
  // User space only, so that a number has the same meaning for each user. System calls are counted in the kernel.
  absl::StatusOr<CounterSet> opened = CounterSet::Open(parts, Target::ThisThread(), {.user_only = !IsSyscalls(event)});
  if (!opened.ok()) {
    // Where perf is forbidden, getrusage still has page faults, though also those of the kernel: the path tells it.
    absl::StatusOr<CounterSet> usage = CounterSet::Open(parts, Target::ThisThread(), {.only_path = ReadPath::kUsage});
    if (!usage.ok()) return opened.status();
    opened = std::move(usage);
  }
  auto set = std::make_shared<const CounterSet>(*std::move(opened));
  std::string path = DescribePath(event, *set);
  const bool user_only = set->fixed_flags(0).has(Validity::kUserOnly);
  const auto take = IsCalls(event) ? TakeCalls : TakeOnce;
  return Take{.take = [set = std::move(set), take](Body body, void* self) { return take(*set, body, self); },
              .read_path = std::move(path),
              .event_class = ClassOf(event),
              .user_only = user_only};
}

}  // namespace perfkit::measure
