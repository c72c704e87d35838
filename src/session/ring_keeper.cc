// The mutex is held while `keep` runs, so Close has waited for it once it has the mutex. In a forked child, which has
// no copy of the thread, the mutex may be locked for ever.
#include "src/session/ring_keeper.h"

#include <time.h>

#include <utility>

#include "src/sys/clock.h"
#include "src/sys/kernel.h"

namespace perfkit::session {
namespace {

constexpr timespec kStep{.tv_sec = 0, .tv_nsec = 1'000'000};

}  // namespace

RingKeeper::RingKeeper(std::function<void()> keep) : keep_(std::move(keep)), owner_pid_(sys::kernel().getpid()) {}

bool RingKeeper::in_forked_child() const { return sys::kernel().getpid() != owner_pid_; }

void RingKeeper::Open() {
  if (in_forked_child()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (has_ended_) return;
    is_open_ = true;
  }
  if (!has_thread_) has_thread_ = thread_.Start("perfkit-rings", [this] { Work(); }).ok();
  if (!has_thread_) return Close();
  changed_.notify_one();
}

void RingKeeper::Close() {
  if (in_forked_child()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  is_open_ = false;
}

void RingKeeper::Stop() {
  if (in_forked_child()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_open_ = false, has_ended_ = true;
  }
  changed_.notify_one();
  thread_.Join();
}

void RingKeeper::Work() {
  tid_ = sys::kernel().gettid();
  const auto cpu_now_ns = [] { return sys::ClockNs(CLOCK_THREAD_CPUTIME_ID); };
  uint64_t kept_cpu_ns = cpu_now_ns();
  std::unique_lock<std::mutex> lock(mutex_);
  while (!has_ended_) {
    if (!is_open_) {
      changed_.wait(lock);
      continue;
    }
    // No timed wait for changed_: perfkit::locks would record it, a thousand times a second.
    lock.unlock();
    sys::kernel().nanosleep(&kStep);
    lock.lock();
    if (!is_open_) continue;
    cpu_ns_ += cpu_now_ns() - kept_cpu_ns;
    keep_();
    kept_cpu_ns = cpu_now_ns();
  }
}

}  // namespace perfkit::session
