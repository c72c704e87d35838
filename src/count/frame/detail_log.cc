// Opens the detail rings. If the kernel refuses one, hitches are reported without what it would tell. Both rings
// overwrite their oldest records, so they need no reader: a frame within its budget costs only the kernel's writing.
#include "src/count/frame/detail_log.h"

#include <utility>

#include "src/count/switch_log.h"
#include "src/sys/fork_registry.h"
#include "src/sys/mapping.h"

namespace perfkit::count {
namespace {

constexpr size_t kFaultRingBytes = 64 << 10;  // 1,638 faults of 40 bytes, whatever the size of a page.

absl::StatusOr<open::LiveRing> OpenFaultRing(const sys::LazyRights& rights, int group_fd) {
  open::OpenRequest request;
  request.group_fd = group_fd;
  request.attr.type = sys::kTypeSoftware;
  request.attr.config = sys::kSwPageFaults;
  request.attr.sample_period_or_freq = 1;
  request.attr.sample_type = sys::kSampleIp | sys::kSampleTime | sys::kSampleAddr | sys::kSampleRead;
  request.attr.write_backward = 1;
  request.attr.exclude_kernel = 1;  // needs no privilege; the faults of interest are the program's own
  request.attr.exclude_hv = 1;
  request.attr.watermark = 1;
  request.attr.wakeup_events_or_watermark = ~0u;  // never polled: no wake-ups
  request.asked = "the page faults of this thread, with addresses";
  return open::LiveRing::Open(request, static_cast<uint32_t>(kFaultRingBytes / sys::PageSize()), rights);
}

}  // namespace

void DetailLog::Open() {
  const sys::ForkBlocker fork_blocker;
  const sys::LazyRights rights;
  if (absl::StatusOr<open::LiveRing> ring = OpenSwitchRing(true, rights); ring.ok()) switches_ = *std::move(ring);
  const int leader = switches_ ? switches_->fd() : -1;
  if (absl::StatusOr<open::LiveRing> ring = OpenFaultRing(rights, leader); ring.ok()) faults_ = *std::move(ring);
}

void DetailLog::Close() {
  const sys::ForkBlocker fork_blocker;
  faults_.reset();
  switches_.reset();  // The leader.
}

void DetailLog::OnForkedChild() {
  if (switches_) switches_->OnForkedChild();
  if (faults_) faults_->OnForkedChild();
}

DetailRing DetailLog::View(const std::optional<open::LiveRing>& ring) {
  if (!ring) return {};
  return {ring->data(), &ring->page()->data_head};
}

}  // namespace perfkit::count
