// Converts the records of the threads' logs to FrameEvents.
#include "src/count/frame/frame_recording.h"

#include <algorithm>

#include "src/count/frame/frame_counter_impl.h"

namespace perfkit::count {

FrameRecording::FrameRecording(std::shared_ptr<FrameCounterImpl> impl, uint64_t ns_per_tick_q32)
    : impl_(std::move(impl)), reader_(ns_per_tick_q32) {}

FrameRecording::~FrameRecording() { impl_->EndRecording(*this); }

void FrameRecording::Add(FrameThread& thread) {
  reader_.Add(thread.serial, static_cast<uint32_t>(thread.tid), thread.StartLog(reader_.epoch()));
}

const EventPlan& FrameRecording::events() const { return impl_->plan(); }
uint64_t FrameRecording::budget_ns(uint16_t sequence) const { return impl_->budget_ns({sequence}); }

bool FrameRecording::Read(absl::FunctionRef<void(const FrameEvent& event)> visit) {
  return reader_.Read([&](Reader::Log& log, const ZoneRecord& record) { visit(EventOf(log, record)); },
                      Reader::GapsTo(visit));
}

FrameEvent FrameRecording::EventOf(Reader::Log& log, const ZoneRecord& record) const {
  FrameEvent event{.kind = record.kind, .thread = log.thread, .tid = log.tid, .id = record.id};
  switch (record.kind) {
    case ZoneRecordKind::kBegin:
    case ZoneRecordKind::kTask: break;
    case ZoneRecordKind::kEnter:
      event.parent = log.ring->zone(record.id).parent;
      event.name = log.ring->zone(record.id).name;
      [[fallthrough]];
    case ZoneRecordKind::kLeave:
    case ZoneRecordKind::kEnd: event.from_ns = reader_.NextNs(log, record.words[0]); break;
    case ZoneRecordKind::kAbandon: event.id = static_cast<uint16_t>(record.words[0]); break;
    case ZoneRecordKind::kFrame: {
      std::vector<uint64_t>& ends_ns = log.state.ns;
      if (record.id >= ends_ns.size()) ends_ns.resize(record.id + 1u);
      uint64_t& end_ns = ends_ns[record.id];
      event.from_ns = std::max(end_ns, reader_.ToNs(record.words[0]));  // Rounding must not make frames overlap.
      event.to_ns = end_ns = std::max(event.from_ns, reader_.ToNs(record.words[1]));
      event.name = impl_->sequence_name(record.id);
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
    case ZoneRecordKind::kState:
      event.id = FrameText::Of(record.missing).sequence;
      event.is_cut = FrameText::Of(record.missing).is_cut;
      event.from_ns = reader_.ToNs(record.words[0]);
      event.text = record.text();
      break;
    case ZoneRecordKind::kGap:
      event.from_ns = reader_.ToNs(record.words[0]);
      event.to_ns = reader_.ToNs(record.words[1]);
      event.lost = record.words[2];
      break;
  }
  return event;
}

void FrameRecording::ReadGaps(absl::FunctionRef<void(const FrameEvent& event)> visit) const {
  reader_.ReadGaps([](const Reader::Log&) { return false; }, Reader::GapsTo(visit));
}

}  // namespace perfkit::count
