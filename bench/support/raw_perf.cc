// Opens raw events. Uses the system's own header, and only the events' numbers of perfkit.
#include "bench/support/raw_perf.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include <cstring>
#include <utility>

#include "bench/support/events.h"

namespace bench {
namespace {

int OpenOnce(const perfkit::EventType& event, pid_t tid, int group, uint64_t format, bool user_only) {
  perf_event_attr attr;
  std::memset(&attr, 0, sizeof(attr));
  attr.size = sizeof(attr);
  attr.type = event.type;
  attr.config = event.config;
  attr.read_format = format | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  attr.exclude_kernel = attr.exclude_hv = user_only;
  return static_cast<int>(syscall(SYS_perf_event_open, &attr, tid, -1, group, PERF_FLAG_FD_CLOEXEC));
}

int Open(const perfkit::EventType& event, pid_t tid, int group, uint64_t format, std::string* error) {
  int fd = OpenOnce(event, tid, group, format, false);
  if (fd < 0 && errno == EACCES) fd = OpenOnce(event, tid, group, format, true);
  if (fd < 0) *error = std::string("perf_event_open: ") + std::strerror(errno);
  return fd;
}

}  // namespace

RawGroup::RawGroup(pid_t tid) {
  for (size_t i = 0; i < fds_.size() && error_.empty(); ++i)
    fds_[i] = Open(kFour[i], tid, fds_[0], PERF_FORMAT_GROUP, &error_);
  // A sibling that joins a running leader counts only after the group is next scheduled in, and a member that does not
  // count is cheaper to read. So schedule it now.
  if (error_.empty() &&
      (ioctl(fds_[0], PERF_EVENT_IOC_DISABLE, 0) != 0 || ioctl(fds_[0], PERF_EVENT_IOC_ENABLE, 0) != 0))
    error_ = std::string("PERF_EVENT_IOC_ENABLE: ") + std::strerror(errno);
}

RawGroup::RawGroup(RawGroup&& other) noexcept
    : fds_(std::exchange(other.fds_, {-1, -1, -1, -1})), error_(std::move(other.error_)) {}

RawGroup::~RawGroup() {
  for (size_t i = fds_.size(); i-- > 0;) {
    if (fds_[i] >= 0) close(fds_[i]);
  }
}

RawCounter::RawCounter() : fd_(Open(perfkit::event::kCpuClock, 0, -1, 0, &error_)) {}

RawCounter::~RawCounter() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace bench
