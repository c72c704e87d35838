// Counting many threads at once, without asking the kernel about any of them.
//
// Reading another thread's counters interrupts its CPU. Here each thread publishes its own numbers when it suits it (at
// the end of a job), in a slot of its own; whoever wants the sum adds the slots up: some nanoseconds a thread, no
// system call, no interrupt, no lock.
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
#include "perfkit/event_type.h"

namespace perfkit {

namespace count {
class ThreadSlotsImpl;
}

// Sums over all threads, ended ones included, up to what each published last.
struct SlotTotals {
  std::array<uint64_t, kMaxEvents> values{};
  std::array<Snapshot::Times, kMaxEvents> times{};  // of events that can multiplex
  uint32_t missing = ~0u;                           // bit i: some thread has no number for event i, so nor has the sum
  uint32_t threads = 0;                             // that are attached now
};

class ThreadSlots {
 public:
  struct Options {
    size_t max_threads = 256;  // at the same time; further ones are not counted, see refused()
    std::optional<ReadPath> only_path{};
  };

  // Never fails: what cannot be counted is missing, for the reason that reason(i) gives. Opens the events on the
  // calling thread for a moment, to find that out.
  explicit ThreadSlots(std::vector<EventSpec> events) : ThreadSlots(std::move(events), Options()) {}
  ThreadSlots(std::vector<EventSpec> events, const Options& options);
  ~ThreadSlots();
  ThreadSlots(const ThreadSlots&) = delete;
  ThreadSlots& operator=(const ThreadSlots&) = delete;

  // Attaches the calling thread: opens its events, and counts from here until it ends. False when there is no slot
  // left, or the thread is exiting. Once a thread; Publish does it when it was not done.
  bool Attach();

  // Publishes what the calling thread has counted since it was attached; its end publishes too. Neither allocates nor
  // locks once the thread is attached.
  void Publish() noexcept;

  // Adds up. Any thread, at any time; never waits for a publisher.
  void Total(SlotTotals& out) const noexcept;

  // Event `i` of `totals`, with its worth.
  Count count(const SlotTotals& totals, size_t i) const;

  size_t size() const;
  std::string_view reason(size_t i) const;  // why event i has no number on any thread; "" when it has
  uint32_t refused() const;                 // threads that found no slot

 private:
  std::shared_ptr<count::ThreadSlotsImpl> impl_;
};

}  // namespace perfkit
