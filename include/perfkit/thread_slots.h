// Counts many threads at once without system calls.
//
// Reading another thread's counters through the kernel interrupts its CPU. Instead, each thread publishes its counts in
// a slot of its own, e.g. at the end of a job. A reader sums the slots: some nanoseconds for each thread, no system
// call, no interrupt, no lock.
//
//   perfkit::ThreadSlots slots({"task-clock", "page-faults"});
//   worker:      while (Job* job = Next()) { job->Run();  slots.Publish(); }
//   any thread:  perfkit::SlotTotals sum;  slots.Total(sum);
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "perfkit/count.h"
#include "perfkit/event_specs.h"

namespace PERFKIT_NAMESPACE {

namespace count {
class ThreadSlotsImpl;
}

// Sums over all threads, including ended ones, of the counts that each published last, in each event's unit.
struct SlotTotals {
  std::array<uint64_t, kMaxEvents> values{};
  std::array<Snapshot::Times, kMaxEvents> times{};  // For multiplexable events.
  // Bit i: event i has no sum, because a thread once had no count of it; then it has none in later totals either. All
  // bits are set if a slot was published too often while it was read; then later totals may have sums again.
  uint32_t missing = ~0u;
  uint32_t threads = 0;  // Number of threads attached now.
};

#if PERFKIT_ENABLE
// Counts the same events on many threads, each on its own. Neither copyable nor movable. Thread-safe, except that the
// destructor must not run during other calls. Not async-signal-safe. Threads may outlive it. In a forked child nothing
// is counted.
class ThreadSlots {
 public:
  struct Options {
    size_t max_threads = 256;             // Maximum at the same time; further threads are not counted: refused().
    std::optional<ReadPath> only_path{};  // As CounterOptions::only_path.
  };

  // `events` as FrameOptions::events. Never fails: an event that can't be counted has no sums, and reason(i) says why.
  // Opens and closes the events on the calling thread to find that out.
  explicit ThreadSlots(EventSpecs events) : ThreadSlots(std::move(events), Options()) {}
  ThreadSlots(EventSpecs events, const Options& options);
  ~ThreadSlots();
  ThreadSlots(const ThreadSlots&) = delete;
  ThreadSlots& operator=(const ThreadSlots&) = delete;

  // Opens the events on the calling thread and counts until it ends. Returns false if no slot is left, the thread is
  // exiting, or in a forked child. Needed once for each thread; Publish calls it if necessary. Thread-safe. Allocates.
  bool Attach();

  // Publishes what the calling thread has counted since it was attached. The end of a thread publishes, too.
  // Thread-safe. Does not allocate or lock once the thread is attached.
  void Publish() noexcept;

  // Writes the sums of all slots to `out`. Thread-safe; never waits for a publisher.
  void Total(SlotTotals& out) const noexcept;

  // Returns event `i` of `totals` with its Validity.
  Count count(const SlotTotals& totals, size_t i) const;

  // Returns the number of events.
  size_t size() const;
  // Returns why event `i` can't be counted on any thread, or "" if it can. Valid as long as this object.
  std::string_view reason(size_t i) const;
  // Returns the number of threads that Attach refused because no slot was left.
  uint32_t refused() const;

 private:
  std::shared_ptr<count::ThreadSlotsImpl> impl_;
};
#endif

}  // namespace PERFKIT_NAMESPACE

#if !PERFKIT_ENABLE
#include "perfkit/off/thread_slots.h"
#endif
