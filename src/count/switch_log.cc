// Opens and reads switch rings. They overwrite, and their records have one size, so each record is found by its
// position alone, and no reader has to keep up. If more records have come since the last Update than the ring holds,
// that is a gap. Gaps are counted, because it is not known what was missed.
#include "src/count/switch_log.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace perfkit::count {
namespace {

uint32_t DetailedPages() {
  return static_cast<uint32_t>((uint64_t{kSwitchesInRing} << kDetailedSwitchShift) / sys::PageSize());
}

// Returns the record that ends at `position`.
SwitchRecord RecordBefore(uint64_t position, std::span<const std::byte> data) {
  SwitchRecord record;
  std::memcpy(&record, data.data() + ((position - sizeof(record)) & (data.size() - 1)), sizeof(record));
  return record;
}

}  // namespace

absl::StatusOr<open::LiveRing> OpenSwitchRing(bool detailed, const sys::LazyRights& rights, int group_fd) {
  open::OpenRequest request = open::RequestForNothing("the switch records of this thread");
  request.group_fd = group_fd;
  return OpenWithSwitchRing(std::move(request), detailed, rights);
}

absl::StatusOr<open::LiveRing> OpenWithSwitchRing(open::OpenRequest request, bool detailed,
                                                  const sys::LazyRights& rights) {
  request.attr.context_switch = 1;
  request.attr.watermark = 1;
  request.attr.wakeup_events_or_watermark = ~0u;  // No wake-ups: no reader polls.
  if (detailed) {
    request.attr.sample_id_all = 1;
    request.attr.sample_type = sys::kSampleTid | sys::kSampleTime | sys::kSampleCpu;
  }
  return open::LiveRing::Open(request, detailed ? DetailedPages() : 1, rights);
}

void MigrationCounter::Start(const open::LiveRing& ring, uint32_t cpu) {
  position_ = ring.head();
  cpu_ = cpu;
}

// Continues after a gap with the CPU that the last record names.
void MigrationCounter::SkipTo(uint64_t head, std::span<const std::byte> data) {
  gaps_ = std::min(gaps_ + 1, detail::kMaxGaps);
  position_ = head;
  cpu_ = RecordBefore(head, data).cpu;
}

void MigrationCounter::Update(const open::LiveRing& ring) {
  const uint64_t head = ring.head();
  const std::span<const std::byte> data = ring.data();
  if (gaps_ == detail::kMaxGaps) return;
  // Keeps a distance of one record: the kernel may be writing that one.
  const uint64_t room = data.size() - sizeof(SwitchRecord);
  if (head - position_ > room) {
    SkipTo(head, data);
    return;
  }
  const MigrationCounter before = *this;
  while (position_ < head) {
    position_ += sizeof(SwitchRecord);
    const SwitchRecord record = RecordBefore(position_, data);
    if (record.type != sys::kRecordSwitch || record.size != sizeof(record)) {
      gaps_ = detail::kMaxGaps;  // The ring is not as it was set up: its contents can't be used.
      return;
    }
    // The thread is switched in on another CPU than it was switched out on.
    if (!record.is_out() && cpu_ != ~0u && record.cpu != cpu_) ++migrations_;
    cpu_ = record.cpu;
  }
  const uint64_t head_now = ring.head();
  if (head_now - before.position_ <= room) return;
  // The thread was switched so often meanwhile that what was read here may have been overwritten before.
  *this = before;
  SkipTo(head_now, data);
}

}  // namespace perfkit::count
