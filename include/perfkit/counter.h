// Opening counters: names in, a set of counters out, each with the cheapest truthful way to read it.
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

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "perfkit/count.h"
#include "perfkit/event.h"
#include "perfkit/target.h"

namespace perfkit {

struct CounterOptions {
  // Where an event cannot be counted: true makes Open fail with the reason; false keeps it in the set as not_counted,
  // with the reason in CounterSet::reason(i). A name that means nothing is an error either way.
  bool require_all = true;
  // Only this path: for tests, benchmarks, and those who trust nothing but read(2) (kGroupRead). An event that has
  // no such path is treated as one that cannot be counted.
  std::optional<ReadPath> only_path{};
  // Count user space only, even where more is permitted: numbers that mean the same for every user.
  bool user_only = false;
  // Proves ring and clock reads against getrusage before they are trusted: one page fault and one sleep (about
  // 0.1 ms). Switch off only for the second and later threads of a kind that the first has proven.
  bool self_test = true;
};

// Up to kMaxEvents events, counted together from Open until destruction; reads are differences (invariant 10).
// Moves, never copies: a set that was moved from has no events, and reads as missing. Closes its descriptors and
// mappings when it dies; after fork() the child's copy holds nothing and reads as missing. For one thread at a time.
class CounterSet : public CounterReader {
 public:
  // Errors: InvalidArgument (a name, with the nearest real ones; too many events), PermissionDenied (naming the knob),
  // Unavailable (no such counter here), NotFound (the target is gone), ResourceExhausted (descriptors, locked memory).
  static absl::StatusOr<CounterSet> Open(std::initializer_list<EventSpec> events, Target target = Target::ThisThread(),
                                         const CounterOptions& options = {});
  static absl::StatusOr<CounterSet> Open(std::span<const EventSpec> events, Target target = Target::ThisThread(),
                                         const CounterOptions& options = {});
  // Groups as ParseEventList gives them: events of one inner vector run together or not at all.
  static absl::StatusOr<CounterSet> Open(std::span<const std::vector<EventConfig>> groups,
                                         Target target = Target::ThisThread(), const CounterOptions& options = {});

  CounterSet(CounterSet&&) noexcept;
  CounterSet& operator=(CounterSet&&) noexcept;
  ~CounterSet();

  std::string_view name(size_t i) const;  // as it was written
  const EventConfig& event(size_t i) const;
  ReadPath path(size_t i) const;        // how it is read; meaningless when not counted
  absl::Status reason(size_t i) const;  // OK, or why event i has no number

  // Switch counting off and on without closing (one ioctl a group). While off an event still costs at every context
  // switch: destroy the set to pay nothing. Only sets that read by the kernel alone; others: FailedPrecondition.
  absl::Status Enable();
  absl::Status Disable();

 private:
  CounterSet(std::unique_ptr<count::Source> source);
  absl::Status Switch(unsigned long ioctl_request);
  std::unique_ptr<count::Source> owned_;
};

// A set of one.
class Counter {
 public:
  static absl::StatusOr<Counter> Open(const EventSpec& event, Target target = Target::ThisThread(),
                                      const CounterOptions& options = {});

  // What was counted since Open. False when there is no number; `out` says why by its validity.
  bool Read(Count& out) const noexcept;

  const CounterSet& set() const { return set_; }

 private:
  explicit Counter(CounterSet set);
  CounterSet set_;
  Snapshot opened_;
};

}  // namespace perfkit
