// Descriptors of events that send signals: a signal handler can disable an event while other threads open and close
// theirs.
//
//   SignallingFd ── Add ──> words_ | number, fd | 0 | number, fd |  <── SwitchOff(number): in a handler
//                <─ Remove: waits until no handler uses a descriptor
//
// Memory of closed descriptors is used again, and none is freed before the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "src/base/in_handler.h"
#include "src/sys/fd.h"

namespace perfkit::sample {

class SignalSwitches {
 public:
  static constexpr size_t kMaxDescriptors = 1 << 20;

  // In a handler: disables all events whose signals have that number, with those that inherited them.
  PERFKIT_IN_HANDLER void SwitchOff(uint32_t number);

  // Not thread-safe, as a sampler is not. Add returns where it put the descriptor; kNone if kMaxDescriptors are there.
  static constexpr size_t kNone = SIZE_MAX;
  size_t Add(uint32_t number, int fd);
  // Removes it from place `at`, without allocating memory. Returns false if a handler that may use it has not returned
  // for a second, because its thread does not run: the descriptor must then stay open.
  bool Remove(size_t at);

  // In a forked child: no handler runs there.
  void OnForkedChild() { switching_ = 0; }

 private:
  static constexpr size_t kBlockWords = 1024, kBlocks = kMaxDescriptors / kBlockWords;
  uint64_t& WordAt(size_t at) { return words_[at / kBlockWords][at % kBlockWords]; }

  // A word is the number and the descriptor plus 1, or 0. Handlers read both arrays and write none.
  uint64_t* words_[kBlocks] = {};
  uint32_t switching_ = 0;  // Handlers in SwitchOff.
  std::vector<std::unique_ptr<uint64_t[]>> blocks_;
  std::vector<size_t> free_;
};

// The descriptor of an event, which handlers can switch off if it was added to SignalSwitches. Movable, not copyable.
class SignallingFd {
 public:
  SignallingFd() = default;
  explicit SignallingFd(sys::OwnedFd fd) : fd_(std::move(fd)) {}
  SignallingFd(SignallingFd&& other) noexcept
      : fd_(std::move(other.fd_)), switches_(std::exchange(other.switches_, nullptr)), at_(other.at_) {}
  SignallingFd& operator=(SignallingFd&& other) noexcept {
    if (this == &other) return *this;
    Reset();
    fd_ = std::move(other.fd_);
    switches_ = std::exchange(other.switches_, nullptr);
    at_ = other.at_;
    return *this;
  }
  ~SignallingFd() { Reset(); }

  // From now on SignalSwitches::SwitchOff with this number disables the event. `switches` must outlive the object.
  void AddTo(SignalSwitches& switches, uint32_t number);

  int get() const { return fd_.get(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }
  void Reset();

 private:
  sys::OwnedFd fd_;
  SignalSwitches* switches_ = nullptr;
  size_t at_ = 0;
};

}  // namespace perfkit::sample
