// The mutex is held while `keep` runs, so Close has waited for it once it has the mutex.
#include "src/session/ring_keeper.h"

#include <chrono>
#include <utility>

#include "src/sys/kernel.h"

namespace perfkit::session {
namespace {

constexpr std::chrono::milliseconds kStep{1};

}  // namespace

RingKeeper::RingKeeper(std::function<void()> keep) : keep_(std::move(keep)), owner_pid_(sys::kernel().getpid()) {}

void RingKeeper::Open() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (has_ended_) return;
    is_open_ = true;
  }
  if (!has_thread_) has_thread_ = thread_.Start("perfkit-rings", [this] { Work(); }).ok();
  if (!has_thread_) return Close();
  changed_.notify_one();
}

// The keeper's thread is not in a forked child, and its mutex may be locked there for ever.
void RingKeeper::Close() {
  if (sys::kernel().getpid() != owner_pid_) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  is_open_ = false;
}

void RingKeeper::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_open_ = false, has_ended_ = true;
  }
  changed_.notify_one();
  thread_.Join();
}

void RingKeeper::Work() {
  tid_ = sys::kernel().gettid();
  std::unique_lock<std::mutex> lock(mutex_);
  while (!has_ended_) {
    if (!is_open_) {
      changed_.wait(lock);
      continue;
    }
    changed_.wait_for(lock, kStep);
    if (is_open_) keep_();
  }
}

}  // namespace perfkit::session
