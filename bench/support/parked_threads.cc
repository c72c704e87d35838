// Parks threads on one condition variable.
#include "bench/support/parked_threads.h"

#include <unistd.h>

namespace bench {

ParkedThreads::ParkedThreads(size_t count, const std::function<void()>& first) {
  threads_.reserve(count);
  for (size_t i = 0; i < count; ++i) threads_.emplace_back([this, &first] { Park(first); });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return tids_.size() == count; });
}

void ParkedThreads::Park(const std::function<void()>& first) {
  first();
  std::unique_lock lock(mutex_);
  tids_.push_back(gettid());
  changed_.notify_all();
  changed_.wait(lock, [&] { return released_; });
}

ParkedThreads::~ParkedThreads() {
  {
    const std::lock_guard lock(mutex_);
    released_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace bench
