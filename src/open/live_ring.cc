// Maps rings read-only. The kernel then overwrites (perf_mmap in kernel/events/core.c: a ring that is not writable has
// no data_tail to wait for), which makes the ring's head an endless counter.
#include "src/open/live_ring.h"

#include <errno.h>

#include <utility>

#include "src/sys/kernel.h"
#include "src/sys/perf_error.h"

namespace perfkit::open {

absl::StatusOr<LiveRing> LiveRing::Open(const OpenRequest& request, uint32_t data_pages,
                                        const sys::LazyRights& rights) {
  OpenRequest opened = request;
  opened.attr.disabled = (request.attr.sample_type & sys::kSampleRead) != 0;
  absl::StatusOr<OpenedEvent> event = OpenEvent(opened, rights);
  if (absl::IsInvalidArgument(event.status()) && std::exchange(opened.group_fd, -1) >= 0) {
    event = OpenEvent(opened, rights);
  }
  if (!event.ok()) return event.status();
  absl::StatusOr<LiveRing> ring = Map(*std::move(event), data_pages, request.asked, rights);
  if (ring.ok() && opened.attr.disabled != 0) {
    if (absl::Status on = ring->Switch(sys::kIocEnable, request.asked, rights); !on.ok()) return on;
  }
  return ring;
}

absl::Status LiveRing::Switch(unsigned long ioctl_request, std::string_view asked,
                              const sys::LazyRights& rights) const {
  if (sys::kernel().ioctl(fd(), ioctl_request, 0) == 0) return absl::OkStatus();
  const int error = errno;  // rights.get() may read files.
  return sys::PerfError(sys::PerfCall::kIoctl, error, asked, rights.get());
}

absl::StatusOr<LiveRing> LiveRing::Map(OpenedEvent event, uint32_t data_pages, const std::string& asked,
                                       const sys::LazyRights& rights) {
  const size_t page_size = sys::PageSize();
  std::optional<sys::Mapping> mapping = sys::Mapping::ReadOnly(event.fd.get(), page_size * (1 + size_t{data_pages}));
  if (!mapping) {
    const int error = errno;
    return sys::PerfError(sys::PerfCall::kMapRing, error, asked, rights.get());
  }
  return LiveRing(std::move(event), *std::move(mapping), page_size);
}

}  // namespace perfkit::open
