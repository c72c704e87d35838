// The last frames in a ring of fixed size.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "perfkit/frame.h"

namespace perfkit::count {

class History {
 public:
  // Rounds `frames` up to a power of two, so that a mask gives the index.
  explicit History(size_t frames) : ring_(std::bit_ceil(std::clamp(frames, size_t{2}, SIZE_MAX / 2 + 1))) {}

  // The next record: fill it, then Push().
  FrameRecord& next() { return ring_[end_ & (ring_.size() - 1)]; }
  void Push() { ++end_; }
  FrameHistory view() const {
    return FrameHistory(ring_.data(), ring_.size() - 1, end_, end_ < ring_.size() ? end_ : ring_.size());
  }
  // Returns the newest record; if there is none yet, one in which nothing was counted.
  const FrameRecord& last() const { return ring_[(end_ - 1) & (ring_.size() - 1)]; }
  void Clear() {
    end_ = 0;
    for (FrameRecord& record : ring_) record = {};
  }

 private:
  std::vector<FrameRecord> ring_;
  uint64_t end_ = 0;
};

}  // namespace perfkit::count
