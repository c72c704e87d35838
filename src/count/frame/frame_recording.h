// The zones, frames and counts of a FrameCounter's threads while a reader records them, by CLOCK_MONOTONIC.
//
//   threads ── ZoneLog each ──> FrameRecording::Read ──> FrameEvent, thread by thread, each in order of time
//
// Outlives the FrameCounter, which it keeps no thread of alive. Ends when it is destroyed.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "src/count/frame/event_plan.h"
#include "src/count/frame/tick_clock.h"
#include "src/count/frame/zone_log.h"

namespace perfkit::count {

class FrameCounterImpl;
class FrameThread;

// Something that a thread's log tells.
struct FrameEvent {
  ZoneRecordKind kind = ZoneRecordKind::kBegin;
  uint64_t thread = 0;  // not used again for another thread of the same FrameCounter
  uint32_t tid = 0;
  uint64_t from_ns = 0;  // kEnter, kLeave, kReason, kEnd: when; kFrame, kGap: from when
  uint64_t to_ns = 0;    // kFrame, kGap
  uint16_t id =
      0;  // kEnter: the zone, one path of names on its thread; kAbandon: its depth; kFrame, kReason: its chain
  uint16_t parent = 0;         // kEnter: the zone around it; 0: none
  const char* name = nullptr;  // kEnter: of the zone alone; kFrame: of its chain, "" for the main one
  // kFrame. `missing`: bit i is set if value i says nothing.
  uint64_t number = 0;
  uint32_t missing = 0;
  std::span<const uint64_t> values;
  std::string_view text{};  // kHitch: why frame `number` was late; kReason: why the frame under way is kept
  uint64_t lost = 0;        // kGap: records
};

// Thread-safe.
class FrameRecording {
 public:
  // By FrameCounterImpl::Record().
  FrameRecording(std::shared_ptr<FrameCounterImpl> impl, uint64_t ns_per_tick_q32);
  ~FrameRecording();
  FrameRecording(const FrameRecording&) = delete;
  FrameRecording& operator=(const FrameRecording&) = delete;

  // Visits what happened since the last call. Views die when visit returns.
  void Read(absl::FunctionRef<void(const FrameEvent& event)> visit);
  // After Read, visits a kGap without an end for each thread whose zones are not known now: its log is full; or it was
  // inside a zone when the recording began, and has not entered or left one since. A thread that ended while its log
  // was full has its kGap from one of the next two calls of Read.
  void ReadGaps(absl::FunctionRef<void(const FrameEvent& event)> visit) const;

  // The events whose counts a kFrame has.
  const EventPlan& events() const;
  // Frames of a chain that take longer are slow; 0: none.
  uint64_t budget_ns(uint16_t chain) const;

  // For FrameCounterImpl, with its list of threads locked.
  void Add(FrameThread& thread);
  // Another recording listens from now on.
  void Detach();

 private:
  struct Log {
    uint64_t thread = 0;
    uint32_t tid = 0;
    std::shared_ptr<ZoneLog> log;
    bool has_begun = false, has_ended = false;
    uint64_t last_ns = 0;                // of its zones
    std::vector<uint64_t> frame_end_ns;  // of each chain's last frame
  };
  void ReadLog(Log& log, absl::FunctionRef<void(const FrameEvent& event)> visit);
  void ReadLastGap(const Log& log, absl::FunctionRef<void(const FrameEvent& event)> visit) const;
  FrameEvent EventOf(Log& log, const ZoneRecord& record) const;

  const std::shared_ptr<FrameCounterImpl> impl_;
  const uint64_t epoch_;
  mutable std::mutex mutex_;
  TickClock clock_;
  std::vector<Log> logs_;
};

}  // namespace perfkit::count
