// Reads the threads' logs and puts their ticks on CLOCK_MONOTONIC. A log is shared with its thread, and outlives it:
// the recording notices that a thread has ended by being the log's only owner, and reads it once more then.
#include "src/count/frame/frame_recording.h"

#include <algorithm>
#include <atomic>

#include "src/count/frame/frame_counter_impl.h"

namespace perfkit::count {
namespace {

uint64_t NextEpoch() {
  static std::atomic<uint64_t> epochs{0};  // told apart, no more
  return epochs.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

FrameRecording::FrameRecording(std::shared_ptr<FrameCounterImpl> impl, uint64_t ns_per_tick_q32)
    : impl_(std::move(impl)), epoch_(NextEpoch()), clock_(ns_per_tick_q32) {}

FrameRecording::~FrameRecording() { impl_->EndRecording(*this); }

void FrameRecording::Add(FrameThread& thread) {
  const std::lock_guard<std::mutex> lock(mutex_);
  logs_.push_back({thread.serial, static_cast<uint32_t>(thread.tid), thread.StartLog(epoch_)});
}

const EventPlan& FrameRecording::events() const { return impl_->plan(); }
uint64_t FrameRecording::budget_ns(uint16_t chain) const { return impl_->budget_ns({chain}); }

void FrameRecording::Detach() {
  const std::lock_guard<std::mutex> lock(mutex_);
  logs_.clear();
}

void FrameRecording::Read(absl::FunctionRef<void(const FrameEvent& event)> visit) {
  const std::lock_guard<std::mutex> lock(mutex_);
  clock_.Read();
  for (Log& log : logs_) {
    ReadLog(log, visit);
    if (log.has_ended) ReadLastGap(log, visit);
  }
  // Those that only we hold are of threads, or of a FrameCounter, that have ended. Once more, for what they wrote last.
  std::erase_if(logs_, [](const Log& log) { return log.has_ended; });
  for (Log& log : logs_) log.has_ended = log.log.use_count() == 1;
}

void FrameRecording::ReadLog(Log& log, absl::FunctionRef<void(const FrameEvent& event)> visit) {
  log.log->Read(epoch_, [&](const ZoneRecord& record) {
    log.has_begun = true;
    visit(EventOf(log, record));
  });
}

// Of a thread that was detached while its log was full: it had no room to say so.
void FrameRecording::ReadLastGap(const Log& log, absl::FunctionRef<void(const FrameEvent& event)> visit) const {
  const ZoneLog::Loss loss = log.log->CurrentLoss();
  if (!log.has_begun || loss.records == 0) return;
  const uint64_t from_ns = clock_.ToNs(loss.from_ticks);
  visit({.kind = ZoneRecordKind::kGap,
         .thread = log.thread,
         .tid = log.tid,
         .from_ns = from_ns,
         .to_ns = loss.to_ticks != 0 ? std::max(from_ns, clock_.ToNs(loss.to_ticks)) : from_ns,
         .lost = loss.records});
}

FrameEvent FrameRecording::EventOf(Log& log, const ZoneRecord& record) const {
  FrameEvent event{.kind = record.kind, .thread = log.thread, .tid = log.tid, .id = record.id};
  switch (record.kind) {
    case ZoneRecordKind::kBegin: break;
    case ZoneRecordKind::kEnter:
      event.parent = log.log->zone(record.id).parent;
      event.name = log.log->zone(record.id).name;
      [[fallthrough]];
    case ZoneRecordKind::kLeave:
    case ZoneRecordKind::kEnd:  // The rate of the clock changes between two reads: times must not run backwards for it.
      event.from_ns = log.last_ns = std::max(log.last_ns, clock_.ToNs(record.words[0]));
      break;
    case ZoneRecordKind::kAbandon: event.id = static_cast<uint16_t>(record.words[0]); break;
    case ZoneRecordKind::kFrame: {
      if (record.id >= log.frame_end_ns.size()) log.frame_end_ns.resize(record.id + 1u);
      uint64_t& end_ns = log.frame_end_ns[record.id];
      event.from_ns = std::max(end_ns, clock_.ToNs(record.words[0]));
      event.to_ns = end_ns = std::max(event.from_ns, clock_.ToNs(record.words[1]));
      event.name = impl_->chain_name(record.id);
      event.number = record.words[2];
      event.missing = record.missing;
      event.values = record.words.subspan(3);
      break;
    }
    case ZoneRecordKind::kHitch:
      event.number = record.words[0];
      event.text = record.text();
      break;
    case ZoneRecordKind::kReason:
      event.id = static_cast<uint16_t>(record.missing);
      event.from_ns = clock_.ToNs(record.words[0]);
      event.text = record.text();
      break;
    case ZoneRecordKind::kGap:
      event.from_ns = clock_.ToNs(record.words[0]);
      event.to_ns = clock_.ToNs(record.words[1]);
      event.lost = record.words[2];
      break;
  }
  return event;
}

void FrameRecording::ReadGaps(absl::FunctionRef<void(const FrameEvent& event)> visit) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Log& log : logs_) {
    const ZoneLog::Loss loss = log.log->CurrentLoss();
    if (log.has_begun && loss.records == 0) continue;
    visit({.kind = ZoneRecordKind::kGap,
           .thread = log.thread,
           .tid = log.tid,
           .from_ns = log.has_begun ? clock_.ToNs(loss.from_ticks) : 0,
           .to_ns = UINT64_MAX,
           .lost = log.has_begun ? loss.records : 0});
  }
}

}  // namespace perfkit::count
