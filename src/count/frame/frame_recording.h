// Records the zones, frames and counts of a FrameCounter's threads, with times of CLOCK_MONOTONIC.
//
//   threads ── a ZoneLog for each ──> FrameRecording::Read ──> FrameEvents, thread by thread, each in order of time
//
// A recording lasts from FrameCounterImpl::Record until it is destroyed. It may outlive the FrameCounter and its
// threads: it shares their logs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "src/count/frame/event_plan.h"
#include "src/count/frame/log_reader.h"
#include "src/count/frame/zone_log.h"

namespace perfkit::count {

class FrameCounterImpl;
class FrameThread;

// A record of a thread's log (zone_log.h has the kinds). Members that a kind does not name are unspecified for it.
struct FrameEvent {
  ZoneRecordKind kind = ZoneRecordKind::kBegin;
  uint64_t thread = 0;  // Serial number, not used again for another thread of the same FrameCounter.
  uint32_t tid = 0;
  uint64_t from_ns = 0;  // kEnter, kLeave, kReason, kState, kEnd: its time. kFrame, kGap: its begin.
  uint64_t to_ns = 0;    // kFrame, kGap: its end.
  // kEnter: the zone, one for each path of names on this thread. kAbandon: the depth of the zone. kFrame, kReason, kState:
  // the sequence.
  uint16_t id = 0;
  uint16_t parent = 0;               // kEnter: the zone around it; 0 means none.
  const char* name = nullptr;        // kEnter: the zone's own name. kFrame: the sequence's name, "" for the main one.
  uint64_t number = 0;               // kFrame, kHitch: number of the frame.
  uint32_t missing = 0;              // kFrame: bit i means that value i is not known, or too low.
  std::span<const uint64_t> values;  // kFrame: the counts, by event.
  // kHitch: why the frame was late. kReason: why the frame under way is kept. kState: what the program says of it.
  std::string_view text{};
  bool is_cut = false;               // kReason, kState: the text was longer.
  uint64_t lost = 0;                 // kGap: number of lost records.
};

// Thread-safe. `visit` must not call Read, ReadGaps, Add or Detach: they lock.
class FrameRecording {
 public:
  // For FrameCounterImpl::Record.
  FrameRecording(std::shared_ptr<FrameCounterImpl> impl, uint64_t ns_per_tick_q32);
  ~FrameRecording();
  FrameRecording(const FrameRecording&) = delete;
  FrameRecording& operator=(const FrameRecording&) = delete;

  // Visits what happened since the last call. Views are valid until visit returns. Returns false once another recording
  // listens: what happened since the last call is not known then.
  bool Read(absl::FunctionRef<void(const FrameEvent& event)> visit);
  // To be called after a Read that returned true. Visits a kGap whose to_ns is UINT64_MAX for each thread whose zones
  // are not known now: its log is full; or it was inside a zone when the recording began, and has not entered or left
  // one since. (If a thread ends while its log is full, one of the next two calls of Read visits its kGap.)
  void ReadGaps(absl::FunctionRef<void(const FrameEvent& event)> visit) const;

  // Returns the events of FrameEvent::values.
  const EventPlan& events() const;
  // Returns the budget of a sequence's frames: longer ones are slow. 0 means no budget.
  uint64_t budget_ns(uint16_t sequence) const;

  // For FrameCounterImpl, with its list of threads locked: starts a thread's log.
  void Add(FrameThread& thread);
  // To be called when another recording listens from now on.
  void Detach() { reader_.Detach(); }

 private:
  // When each sequence's last frame ended.
  struct FrameEnds {
    std::vector<uint64_t> ns;
  };
  using Reader = LogReader<ZoneLog, FrameEnds>;
  FrameEvent EventOf(Reader::Log& log, const ZoneRecord& record) const;

  const std::shared_ptr<FrameCounterImpl> impl_;
  Reader reader_;
};

}  // namespace perfkit::count
