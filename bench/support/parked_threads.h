// Threads that do one thing and then block until they are released: other threads to be counted.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace bench {

class ParkedThreads {
 public:
  // Returns when all threads are parked.
  ParkedThreads(size_t count, const std::function<void()>& first);
  ~ParkedThreads();
  ParkedThreads(const ParkedThreads&) = delete;
  ParkedThreads& operator=(const ParkedThreads&) = delete;

  const std::vector<pid_t>& tids() const { return tids_; }

 private:
  void Park(const std::function<void()>& first);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<pid_t> tids_;  // Of the parked threads.
  bool released_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace bench
