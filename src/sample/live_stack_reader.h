// Live stacks on the reader's side: opens their handler, merges their rings with the kernel's, and finds the samples
// that the stacks belong to.
//
// Each signal of a sample counts once in the event's StackAccounting: its stack was delivered or is a duplicate, or it
// has none, for a reason that the handler or this reader has counted. All functions but Open do nothing for samplers
// without live stacks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "src/base/id_table.h"
#include "src/ring/time_merge.h"
#include "src/sample/accounting.h"
#include "src/sample/duplicate_filter.h"
#include "src/sample/live_stack_handler.h"
#include "src/sample/writer_index.h"

namespace perfkit::sample {

// Not thread-safe.
class LiveStackReader {
 public:
  // The plan must outlive the reader.
  explicit LiveStackReader(const Plan& plan) : plan_(plan) {}

  // Opens the handler if the plan has live stacks, and sets the plan's signals. `plan`: the reader's. Errors:
  // ResourceExhausted if the rings do not fit into half of memory_bytes; those of LiveStackHandler::Make.
  absl::Status Open(Plan& plan);
  bool is_open() const { return handler_ != nullptr; }

  // Finds the writers of signals among `writers` from now on, and adds the rings to `merge`.
  void Index(const std::vector<Writer>& writers, ring::TimeMerge& merge);
  // Returns the time up to which all records have been written, at `now_ns`, except stacks of running handlers; for
  // samplers without live stacks too.
  uint64_t Horizon(uint64_t now_ns);
  // Notes a sample, for signals that do not say whether they are stale.
  void NoteSample(const RawRecord& sample, const Writer& writer);
  // Writes the id of the stack's event into the record, and adds it to `accounting`. Returns the event, or nullopt if
  // the stack is not to be delivered.
  std::optional<uint32_t> Take(const RawRecord& raw, const std::vector<Writer>& writers, DuplicateFilter& duplicates,
                               Accounting& accounting);
  // After a drain: gives back rings that are no longer needed, and prepares the others for what comes next.
  void PrepareRings();
  void FillAccounting(size_t event, EventAccounting& accounting) const;

  // A thread has ended; and its rings of samples were closed.
  void Ended(pid_t tid);
  void Forget(pid_t tid);

  void Maintain();
  void MaintainBriefly();
  void Pause(bool pause);
  // Sets the maximum number of frames of later walks.
  void Limit(uint32_t frames);
  // Returns the time of handlers since the last call, in nanoseconds.
  uint64_t TakeHandlersNs() { return is_open() ? handler_->rings().TakeHandlerNs() : 0; }
  // Returns when a handler first disabled an event since the last ForgetSwitchedOff, because a thread did not advance;
  // 0 if none has.
  uint64_t SwitchedOffSince();
  void ForgetSwitchedOff() { switched_off_ns_ = 0; }
  void OnForkedChild();

 private:
  absl::StatusOr<StackRings::Shape> ChooseShape() const;
  bool IsOfLastSample(const RawRecord& raw, uint32_t number) const;

  const Plan& plan_;
  LiveStackHandler::Owner handler_;
  base::IdTable numbers_;      // From the numbers of signals to indices of writers.
  uint64_t without_ring_ = 0;  // Signals without a ring, as of the last PrepareRings.
  // Signals by descriptors do not say whether they are stale. So, by signal number, the ip of the last sample; and by
  // event, the number of stacks whose thread had continued since its sample.
  std::unordered_map<uint32_t, uint64_t> last_ips_;
  std::vector<uint64_t> gone_on_;
  uint64_t switched_off_ns_ = 0;  // SwitchedOffSince
};

}  // namespace perfkit::sample
