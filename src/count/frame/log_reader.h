// Reads the logs of all threads of an instance (a FrameCounter, a TaskCounter), and converts their ticks to times of
// CLOCK_MONOTONIC.
//
// A log is shared with its thread, and outlives it. Once the reader is the log's only owner, the thread has ended, and
// the reader reads the log once more.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "src/count/frame/record_ring.h"
#include "src/count/frame/tick_clock.h"

namespace perfkit::count {

// `Ring` is a RecordRing. `State` is what the reader stores for each log. Thread-safe.
template <class Ring, class State>
class LogReader {
 public:
  struct Log {
    uint64_t thread = 0;  // Not used again for another thread of the same instance.
    uint32_t tid = 0;
    std::shared_ptr<Ring> ring;
    State state{};
    uint64_t last_ns = 0;
    bool has_begun = false, has_ended = false;
  };

  explicit LogReader(uint64_t ns_per_tick_q32) : epoch_(NextEpoch()), clock_(ns_per_tick_q32) {}

  uint64_t epoch() const { return epoch_; }
  void Add(uint64_t thread, uint32_t tid, std::shared_ptr<Ring> ring) {
    const std::lock_guard<std::mutex> lock(mutex_);
    logs_.push_back({.thread = thread, .tid = tid, .ring = std::move(ring)});
  }
  // Forgets all logs, because another reader listens from now on.
  void Detach() {
    const std::lock_guard<std::mutex> lock(mutex_);
    logs_.clear();
    is_detached_ = true;
  }

  // Calls visit(log, record) with the records since the last call. Calls gap(log, from_ns, to_ns, records) for each
  // thread that was detached while its log was full, and so had no room for a kGap. Returns false once another
  // reader listens: what happened since the last call is not known then.
  template <class Visit, class Gap>
  bool Read(Visit&& visit, Gap&& gap) {
    const std::lock_guard<std::mutex> lock(mutex_);
    clock_.Read();
    for (Log& log : logs_) {
      log.ring->Read(epoch_, [&](const ZoneRecord& record) {
        log.has_begun = true;
        visit(log, record);
      });
      if (!log.has_ended || !log.has_begun) continue;
      const RecordRing::Loss loss = log.ring->CurrentLoss();
      if (loss.records == 0) continue;
      const uint64_t from_ns = ToNs(loss.from_ticks);
      gap(log, from_ns, loss.to_ticks != 0 ? std::max(from_ns, ToNs(loss.to_ticks)) : from_ns, loss.records);
    }
    // If a log has no other owner, its thread has ended, or its instance was destroyed. The next Read reads it once
    // more, for its last records, and then drops it.
    std::erase_if(logs_, [](const Log& log) { return log.has_ended; });
    for (Log& log : logs_) log.has_ended = log.ring.use_count() == 1;
    return !is_detached_;
  }

  // Calls gap(log, from_ns, UINT64_MAX, records) for each thread whose state is unknown from from_ns on:
  //   it has not begun                               from_ns is 0
  //   it has lost records, and written none since    from_ns is the first loss
  //   is_unknown(log) returns true                   from_ns is the last record
  template <class IsUnknown, class Gap>
  void ReadGaps(IsUnknown&& is_unknown, Gap&& gap) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const Log& log : logs_) {
      const RecordRing::Loss loss = log.ring->CurrentLoss();
      if (!log.has_begun) {
        gap(log, 0, UINT64_MAX, 0);
      } else if (loss.records != 0) {
        gap(log, ToNs(loss.from_ticks), UINT64_MAX, loss.records);
      } else if (is_unknown(log)) {
        gap(log, log.last_ns, UINT64_MAX, 0);
      }
    }
  }

  // Returns the `gap` for the two functions above that calls `visit` with an Event of the kind kGap.
  template <class Event>
  static auto GapsTo(absl::FunctionRef<void(const Event& event)> visit) {
    return [visit](const Log& log, uint64_t from_ns, uint64_t to_ns, uint64_t records) {
      Event event;
      event.kind = ZoneRecordKind::kGap;
      event.thread = log.thread, event.tid = log.tid;
      event.from_ns = from_ns, event.to_ns = to_ns;
      event.lost = records;
      visit(event);
    };
  }

  // Call it from visit functions only, because it needs the mutex that is held then.
  uint64_t ToNs(uint64_t ticks) const { return clock_.ToNs(ticks); }
  // As above, but not less than the time that the last call for this log returned: the rate of the clock changes
  // between two reads, and times must not run backwards.
  uint64_t NextNs(Log& log, uint64_t ticks) const { return log.last_ns = std::max(log.last_ns, ToNs(ticks)); }

 private:
  static uint64_t NextEpoch() {
    static std::atomic<uint64_t> epochs{0};  // Relaxed: only has to differ from reader to reader.
    return epochs.fetch_add(1, std::memory_order_relaxed) + 1;
  }

  const uint64_t epoch_;
  mutable std::mutex mutex_;
  TickClock clock_;
  std::vector<Log> logs_;
  bool is_detached_ = false;
};

}  // namespace perfkit::count
