// Puts records into the queue as long as there is room, and unwinds them in batches. The side that pushes never waits:
// what finds no room is counted. Records of mappings end a batch, because they change what the next samples' pcs mean.
#include "src/unwind/dwarf/sampled/unwind_queue.h"

#include <algorithm>

#include "src/ring/record_fields.h"

namespace perfkit {
namespace unwind {
namespace {

using ring::Is;

void Add(std::atomic<uint64_t>& count) { count.fetch_add(1, std::memory_order_release); }

}  // namespace

UnwindLoop::UnwindLoop(const SampleLayout& layout, const UnwindQueueOptions& options)
    : layout_(layout), max_frames_(std::max<size_t>(options.max_frames, 1)), queue_(options.bytes) {
  batch_.reserve(kBatch);
  samples_.reserve(kBatch);
  frames_.resize(kBatch * max_frames_);
  stacks_.resize(kBatch);
}

// Samples leave some room for other records: without a mapping's record, no later sample of its code can be unwound.
bool UnwindLoop::Push(const SamplerRecord& record) {
  const bool is_sample = Is(record, RecordType::kSample);
  if (!is_sample && !Is(record, RecordType::kMmap) && !Is(record, RecordType::kMmap2) &&
      !Is(record, RecordType::kComm) && !Is(record, RecordType::kFork) && !Is(record, RecordType::kExit)) {
    return true;
  }
  if (is_sample) Add(pushed_);
  if (state() != kOpen) {
    if (!is_sample) Add(others_lost_);
    return false;
  }
  if (!queue_.Push(record, is_sample ? queue_.size_bytes() / 8 : 0)) {
    return Add(is_sample ? no_room_ : others_lost_), false;
  }
  const uint64_t waiting = queue_.waiting_bytes();
  if (waiting > max_bytes_.load(std::memory_order_relaxed)) max_bytes_.store(waiting, std::memory_order_relaxed);
  return true;
}

bool UnwindLoop::TakeBatch(Unwinder& unwinder) {
  batch_.clear();
  bool any = false;
  for (uint64_t next = position_; batch_.size() < kBatch; position_ = next) {
    const std::optional<SamplerRecord> record = queue_.At(next);
    if (!record) break;
    if (!Is(*record, RecordType::kSample)) {
      if (!batch_.empty()) break;  // It belongs to the next batch.
      unwinder.Add(*record, layout_);
    } else if (const std::optional<Sample> sample = Sample::Parse(*record, layout_)) {
      if (batch_.empty()) unwinder.Add(*record, layout_);  // For its time. The others of a batch are little later.
      batch_.push_back({*record, *sample});
    } else {
      Add(malformed_);
    }
    any = true;
  }
  return any;
}

void UnwindLoop::UnwindBatch(Unwinder& unwinder, UnwindQueue::Visit visit) {
  samples_.clear();
  for (const Waiting& waiting : batch_) samples_.push_back(waiting.sample);
  unwinder.Unwind(samples_, std::span(frames_).first(samples_.size() * max_frames_), stacks_);
  for (size_t i = 0; i < batch_.size(); ++i) {
    if (state() == kStopped) return;
    Add(unwound_);
    visit({batch_[i].record, batch_[i].sample, stacks_[i],
           std::span<const StackFrame>(frames_).subspan(i * max_frames_, stacks_[i].frames)});
  }
}

// The state is read before the queue, so that records pushed before Finish are seen.
void UnwindLoop::Run(Unwinder& unwinder, UnwindQueue::Visit visit) {
  while (true) {
    const uint32_t signal = queue_.signal();
    const State now = state();
    if (now == kStopped) break;
    if (TakeBatch(unwinder)) {
      if (!batch_.empty()) UnwindBatch(unwinder, visit);
      queue_.Release(position_);
    } else if (now == kFinishing) {
      break;
    } else {
      queue_.Wait(signal);
    }
  }
  ended_.store(true, std::memory_order_release);
}

void UnwindLoop::End(bool at_once) {
  State open = kOpen;
  if (at_once) {
    state_.store(kStopped, std::memory_order_release);
  } else {
    state_.compare_exchange_strong(open, kFinishing, std::memory_order_acq_rel);
  }
  queue_.Wake();
}

// `pushed` is read last, so that it includes everything that the other counts include.
UnwindQueueStats UnwindLoop::stats() const {
  const auto of = [](const std::atomic<uint64_t>& count) { return count.load(std::memory_order_acquire); };
  const bool ended = ended_.load(std::memory_order_acquire);
  UnwindQueueStats stats{.unwound = of(unwound_),
                         .no_room = of(no_room_),
                         .malformed = of(malformed_),
                         .others_lost = of(others_lost_),
                         .max_bytes = of(max_bytes_)};
  stats.pushed = of(pushed_);
  (ended ? stats.stopped : stats.waiting) = stats.pushed - stats.unwound - stats.no_room - stats.malformed;
  return stats;
}

}  // namespace unwind

UnwindQueue::UnwindQueue(const SampleLayout& layout, UnwindQueueOptions options)
    : loop_(std::make_unique<unwind::UnwindLoop>(layout, options)) {}
UnwindQueue::~UnwindQueue() = default;
bool UnwindQueue::Push(const SamplerRecord& record) { return loop_->Push(record); }
void UnwindQueue::Run(Unwinder& unwinder, Visit visit) { loop_->Run(unwinder, visit); }
void UnwindQueue::Finish() { loop_->End(false); }
void UnwindQueue::Stop() { loop_->End(true); }
UnwindQueueStats UnwindQueue::stats() const { return loop_->stats(); }

}  // namespace perfkit
