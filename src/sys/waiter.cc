// An epoll of the descriptor and a pipe.
#include "src/sys/waiter.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>

#include <utility>

#include "src/sys/files.h"
#include "src/sys/kernel.h"

namespace perfkit::sys {
namespace {

constexpr int kLongestSleepMs = 100;

absl::Status OpenError(const char* what) { return WithDescriptorRemedy(absl::ErrnoToStatus(errno, what)); }

// Sleeps for `timeout_ms`; at most for kLongestSleepMs, because Wake can't end it.
void Sleep(int timeout_ms) {
  const int ms = timeout_ms < 0 || timeout_ms > kLongestSleepMs ? kLongestSleepMs : timeout_ms;
  const timespec time = {.tv_sec = 0, .tv_nsec = ms * 1'000'000};
  kernel().nanosleep(&time);
}

}  // namespace

Waiter::Waiter(OwnedFd epoll, OwnedFd reader, OwnedFd writer)
    : epoll_(std::move(epoll)), reader_(std::move(reader)), writer_(std::move(writer)) {}

absl::StatusOr<Waiter> Waiter::Open(int fd) {
  int ends[2];
  if (kernel().pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return OpenError("cannot open a pipe");
  OwnedFd reader(ends[0]), writer(ends[1]);
  OwnedFd epoll(kernel().epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return OpenError("cannot open an epoll descriptor");
  for (const int watched : {fd, reader.get()}) {
    if (watched < 0) continue;
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = watched;
    if (kernel().epoll_ctl(epoll.get(), EPOLL_CTL_ADD, watched, &event) != 0) {
      return absl::ErrnoToStatus(errno, "cannot watch a descriptor");
    }
  }
  return Waiter(std::move(epoll), std::move(reader), std::move(writer));
}

void Waiter::Wait(int timeout_ms) {
  epoll_event events[2] = {};
  const int ready = kernel().epoll_wait(epoll_.get(), events, 2, timeout_ms);
  // The program has closed the descriptor. Without the sleep, a caller that waits in a loop would use a whole CPU.
  if (ready < 0 && errno != EINTR) Sleep(timeout_ms);
  for (int i = 0; i < ready; ++i) {
    char bytes[64];
    if (events[i].data.fd == reader_.get()) (void)kernel().read(reader_.get(), bytes, sizeof(bytes));
  }
}

void Waiter::Wake() {
  const char byte = 0;
  // A full pipe drops the byte: it is readable, which wakes the waiter anyway.
  (void)!kernel().write(writer_.get(), &byte, 1);
}

void Waiter::Close() {
  for (OwnedFd* const fd : {&epoll_, &reader_, &writer_}) fd->Reset();
}

}  // namespace perfkit::sys
