// Opens sets of counters by the names of events. Each event gets the cheapest way to read it that is correct here.
//
//   auto set = perfkit::CounterSet::Open({"instructions", "page-faults", perfkit::event::kTaskClock});
//   perfkit::Snapshot a, b;
//   set->Read(a);  work();  set->Read(b);
//   perfkit::Count faults = set->Difference(a, b, 1);
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "perfkit/count.h"
#include "perfkit/event_type.h"
#include "perfkit/target.h"
#if PERFKIT_ENABLE
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "perfkit/event.h"
#endif

namespace PERFKIT_NAMESPACE {

struct CounterOptions {
  // If an event can't be counted: true makes Open fail; false keeps it in the set as not counted, and
  // CounterSet::reason(i) says why. If ParseEvent refuses a name, Open fails in both cases. Exception: a tracepoint
  // that this user may not look up (PermissionDenied) is treated as an event that can't be counted.
  bool require_all = true;
  // Allows this read path only, e.g. kGroupRead for read(2); nullopt allows all. An event without this path can't be
  // counted.
  std::optional<ReadPath> only_path{};
  // Counts user space only, even if more is permitted, so that counts mean the same for every user. No effect on
  // clocks, on events with modifiers u, k or h of their own, on events that the kernel raises
  // (EventConfig::kernel_side), and on events that perf does not have.
  bool user_only = false;
  // Tests reads of rings and clocks against getrusage in Open: one page fault and one sleep (about 0.1 ms). Disable it
  // only for further threads with the same events after the first thread's test.
  bool self_test = true;
};

#if PERFKIT_ENABLE
// Up to kMaxEvents events, which count from Open until destruction. Counts are differences of two reads. Those that fit
// share a perf group, so that the kernel counts them over the same time; the others may be multiplexed one by one.
// Movable, not copyable: a moved-from set has no events and reads as missing. In a forked child all events read as
// missing. Not thread-safe: any thread may call it, one at a time. Read is async-signal-safe on the counted thread.
class CounterSet : public CounterReader {
 public:
  // Opens the events on the target and starts counting. A group in braces is no event: ParseEventList returns groups
  // for the third overload. Errors: those of ParseEvent, for a name; InvalidArgument also if there are no events or too
  // many, if an event can't have its modifiers (context-switches:u, task-clock:u), if its PMU can't exclude the kernel
  // (modifiers, user_only), or if perf does not have it (measured_events.h) and the target is not ThisThread();
  // PermissionDenied, naming the setting to change; Unavailable if this machine has no such counter; NotFound if the
  // target has ended; ResourceExhausted if descriptors or locked memory run out; Aborted if threads of the target start
  // faster than they are attached.
  static absl::StatusOr<CounterSet> Open(std::initializer_list<EventSpec> events, Target target = Target::ThisThread(),
                                         const CounterOptions& options = {});
  static absl::StatusOr<CounterSet> Open(std::span<const EventSpec> events, Target target = Target::ThisThread(),
                                         const CounterOptions& options = {});
  // As above, with groups as ParseEventList returns them: the events of an inner vector are on the PMU together or not
  // at all.
  static absl::StatusOr<CounterSet> Open(std::span<const std::vector<EventConfig>> groups,
                                         Target target = Target::ThisThread(), const CounterOptions& options = {});

  CounterSet(CounterSet&&) noexcept;
  CounterSet& operator=(CounterSet&&) noexcept;
  ~CounterSet();

  // Describe event i. Require i < size(). Views are valid as long as the set.
  std::string_view name(size_t i) const;  // As it was written, or the text of its term name=.
  const EventConfig& event(size_t i) const;
  ReadPath path(size_t i) const;  // How event i is read; meaningless if it is not counted.
  // OK, or why event i is not counted. DataLoss: records of it were lost once; differences between two later snapshots
  // have counts again (CounterReader::MissingBetween).
  absl::Status reason(size_t i) const;

  // Disable stops and Enable restarts counting, with one ioctl for each group. A stopped event still costs time
  // at each context switch: destroy the set to avoid that. Errors: FailedPrecondition if any event has another path
  // than ReadPath::kGroupRead, or if the set was moved from; Internal if an ioctl fails: then some groups may be
  // switched and others not.
  absl::Status Enable();
  absl::Status Disable();

 private:
  friend class count::EventPlan;
  explicit CounterSet(std::unique_ptr<count::Source> source);
  absl::Status Switch(unsigned long ioctl_request);
  std::unique_ptr<count::Source> owned_;
};

// A CounterSet with one event. Errors and thread rules: as CounterSet.
class Counter {
 public:
  static absl::StatusOr<Counter> Open(const EventSpec& event, Target target = Target::ThisThread(),
                                      const CounterOptions& options = {});

  // Writes the count since Open to `out`. Returns false if there is none; out.validity says why.
  bool Read(Count& out) const noexcept;

  const CounterSet& set() const { return set_; }

 private:
  explicit Counter(CounterSet set);
  CounterSet set_;
  Snapshot opened_;
};
#endif

}  // namespace PERFKIT_NAMESPACE

#if !PERFKIT_ENABLE
#include "perfkit/off/counter.h"
#endif
