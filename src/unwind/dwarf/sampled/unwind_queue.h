// The implementation of UnwindQueue: the producer's side, and the loop of the thread that unwinds.
#pragma once

#include <atomic>
#include <vector>

#include "perfkit/unwinder.h"
#include "src/unwind/dwarf/sampled/record_queue.h"

namespace perfkit::unwind {

class UnwindLoop {
 public:
  UnwindLoop(const SampleLayout& layout, const UnwindQueueOptions& options);

  // As UnwindQueue's. End is Stop if `at_once`, else Finish.
  bool Push(const SamplerRecord& record);
  void Run(Unwinder& unwinder, UnwindQueue::Visit visit);
  void End(bool at_once);
  UnwindQueueStats stats() const;

 private:
  enum State : uint8_t { kOpen, kFinishing, kStopped };
  // The stacks that are unwound at once, and completed after Stop.
  static constexpr size_t kBatch = 16;

  // A sample that waits to be unwound in a batch.
  struct Waiting {
    SamplerRecord record;
    Sample sample;
  };

  // Takes records up to the next one that changes the meaning of pcs. Returns false if there are none.
  bool TakeBatch(Unwinder& unwinder);
  void UnwindBatch(Unwinder& unwinder, UnwindQueue::Visit visit);
  State state() const { return state_.load(std::memory_order_acquire); }

  const SampleLayout layout_;
  const size_t max_frames_;
  RecordQueue queue_;
  std::atomic<State> state_{kOpen};
  uint64_t position_ = 0;  // The consumer's position in the queue.
  std::vector<Waiting> batch_;
  std::vector<Sample> samples_;
  std::vector<StackFrame> frames_;
  std::vector<UnwoundStack> stacks_;
  // The first four are written by the producer, the others by the consumer.
  std::atomic<uint64_t> pushed_{0}, no_room_{0}, others_lost_{0}, max_bytes_{0};
  std::atomic<uint64_t> unwound_{0}, malformed_{0};
  std::atomic<bool> ended_{false};
};

}  // namespace perfkit::unwind
