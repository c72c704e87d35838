// Opens and maps rings. A streaming ring is mapped writable, as its reader moves data_tail; an overwriting one
// read-only, which is how the kernel tells them apart (perf_mmap, kernel/events/core.c). The latter is written
// backwards, as only then the begin of its latest record is known.
#include "src/open/output_ring.h"

#include <errno.h>

#include <utility>

#include "src/sys/perf_error.h"

namespace perfkit::open {

absl::StatusOr<OutputRing> OutputRing::Open(const OpenRequest& owner, RingMode mode, size_t bytes,
                                            const sys::LazyRights& rights) {
  OpenRequest request = owner;
  request.attr.write_backward = mode == RingMode::kOverwrite;
  absl::StatusOr<OpenedEvent> opened = OpenEvent(request, rights);
  if (!opened.ok()) return opened.status();
  OutputRing ring;
  ring.owner_ = *std::move(opened);
  const size_t page_size = sys::PageSize();
  std::optional<sys::Mapping> mapping = mode == RingMode::kStream
                                            ? sys::Mapping::Shared(ring.fd(), page_size + bytes)
                                            : sys::Mapping::ReadOnly(ring.fd(), page_size + bytes);
  if (!mapping) return sys::PerfError(sys::PerfCall::kMapRing, errno, owner.asked, rights.get());
  // The event owns the ring from here on; reader_ has views into the mapping, which does not move with this object.
  ring.mapping_ = *std::move(mapping);
  auto* const page = reinterpret_cast<UserPage*>(ring.mapping_.data());
  const Bytes data = ring.mapping_.bytes().subspan(page_size);
  ring.reader_ = mode == RingMode::kStream ? RingReader(page, data) : RingReader::Overwrite(page, data);
  return ring;
}

absl::Status OutputRing::TakeOutputOf(int event_fd) const {
  if (sys::kernel().ioctl(event_fd, sys::kIocSetOutput, static_cast<unsigned long>(fd())) == 0) {
    return absl::OkStatus();
  }
  return sys::PerfError(sys::PerfCall::kIoctl, errno, "sending an event's records into a ring");
}

absl::Status OutputRing::Pause(bool pause) const {
  if (sys::kernel().ioctl(fd(), sys::kIocPauseOutput, pause ? 1 : 0) == 0) return absl::OkStatus();
  return sys::PerfError(sys::PerfCall::kIoctl, errno, "pausing a ring");
}

}  // namespace perfkit::open
