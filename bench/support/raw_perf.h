// perf_event_open and read(2) without a library: the lower bound for everything that asks the kernel.
//
// Opened as perfkit opens them: enabled at once, with the same rights (user space only if the kernel may not be
// observed) and the same read format.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>

namespace bench {

// kFour as one group, read in one call: number of events, time enabled, time running, four values.
class RawGroup {
 public:
  using Words = std::array<uint64_t, 7>;

  // For one thread; 0 means the calling one. Check error() before the first Read.
  explicit RawGroup(pid_t tid = 0);
  ~RawGroup();
  RawGroup(RawGroup&& other) noexcept;
  RawGroup(const RawGroup&) = delete;
  RawGroup& operator=(const RawGroup&) = delete;

  const std::string& error() const { return error_; }
  ssize_t Read(Words& words) const { return read(fds_[0], words.data(), sizeof(words)); }

 private:
  std::array<int, 4> fds_ = {-1, -1, -1, -1};
  std::string error_;
};

// cpu-clock in the plain format: value, time enabled, time running.
class RawCounter {
 public:
  using Words = std::array<uint64_t, 3>;

  RawCounter();
  ~RawCounter();
  RawCounter(const RawCounter&) = delete;
  RawCounter& operator=(const RawCounter&) = delete;

  const std::string& error() const { return error_; }
  ssize_t Read(Words& words) const { return read(fd_, words.data(), sizeof(words)); }

 private:
  int fd_;
  std::string error_;
};

}  // namespace bench
