// Opens and walks switch rings.
#include "src/count/switch_log.h"

#include <cstring>

namespace perfkit::count {
namespace {

// 16 pages hold 1,024 switches of 64 bytes: a frame, or a job, has fewer.
constexpr uint32_t kDetailedPages = 16;

}  // namespace

absl::StatusOr<open::LiveRing> OpenSwitchRing(bool detailed, const sys::Rights& rights) {
  open::OpenRequest request;
  request.attr.type = sys::kTypeSoftware;
  request.attr.config = sys::kSwDummy;
  request.attr.context_switch = 1;
  request.attr.exclude_kernel = 1;  // the records come all the same, and everybody may ask
  request.attr.exclude_hv = 1;
  request.attr.watermark = 1;
  request.attr.wakeup_events_or_watermark = ~0u;  // nobody polls: no wake-ups
  if (detailed) {
    request.attr.sample_id_all = 1;
    request.attr.sample_type = sys::kSampleTid | sys::kSampleTime | sys::kSampleCpu;
  }
  request.asked = "the switch records of this thread";
  return open::LiveRing::Open(request, detailed ? kDetailedPages : 1, rights);
}

void MigrationCounter::Start(const open::LiveRing& ring, uint32_t cpu) {
  position_ = ring.head();
  cpu_ = cpu;
}

std::optional<uint64_t> MigrationCounter::Update(const open::LiveRing& ring) {
  const uint64_t head = ring.head();
  const std::span<const std::byte> data = ring.data();
  // One record of room: the one that the kernel may be writing is not read.
  overrun_ = overrun_ || head - position_ > data.size() - sizeof(SwitchRecord);
  if (overrun_) return std::nullopt;
  for (; position_ < head; position_ += sizeof(SwitchRecord)) {
    SwitchRecord record;
    std::memcpy(&record, data.data() + (position_ & (data.size() - 1)), sizeof(record));
    if (record.type != sys::kRecordSwitch || record.size != sizeof(record)) {
      overrun_ = true;  // not the ring that we set up: nothing in it can be trusted
      return std::nullopt;
    }
    if (!record.is_out() && cpu_ != ~0u && record.cpu != cpu_) ++migrations_;
    cpu_ = record.cpu;
  }
  return migrations_;
}

}  // namespace perfkit::count
