// A file descriptor with one owner.
#pragma once

#include <utility>

#include "src/sys/kernel.h"

namespace perfkit::sys {

// Closes its descriptor when it is destroyed. Movable, not copyable. Empty is -1, as descriptor 0 is valid.
class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    if (this != &other) {
      Reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~OwnedFd() { Reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

  // Gives up the descriptor without closing it.
  int Release() { return std::exchange(fd_, -1); }
  void Reset() {
    if (fd_ >= 0) kernel().close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

}  // namespace perfkit::sys
