// The snapshots at which frames end: a ring of marks, from the begin of the oldest frame that is not settled (added to
// the sums and the history) to the begin of the frame under way.
//
//   marks    | settled | … | … | current |      each mark ends a frame and begins the next one
//
// Frames of a segment have no gaps between them. So the sum of all settled frames is the difference of two marks, and a
// frame needs no additions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/count/frame/counted_events.h"

namespace perfkit::count {

// Not thread-safe. Nothing allocates after construction.
class FrameMarks {
 public:
  // Maximum number of frames that may wait to be settled.
  static constexpr size_t kMaxPending = 31;

  // A frame, from mark to mark. Valid until kMaxPending frames later.
  struct Interval {
    const Snapshot& begin;
    const Snapshot& end;

    uint64_t ticks() const { return end.ticks - begin.ticks; }
  };

  // `max_pending`: how many frames may wait, at most kMaxPending.
  explicit FrameMarks(size_t max_pending) : marks_(max_pending + 1) {}

  // The snapshot of the next mark, for the caller to fill. Requires pending() < kMaxPending: else it is still in use.
  // With a smaller `max_pending`, requires Rewind before.
  Snapshot& next() { return marks_[(current_ + 1) % kMarks]; }
  // The mark at which the frame under way began.
  const Snapshot& current() const { return marks_[current_ % kMarks]; }
  // Moves the current mark to the start of the memory. Requires pending() == 0.
  void Rewind(const CountedEvents& events) {
    if (current_ % kMarks != 0) events.Copy(current(), marks_[0]);
    current_ = settled_ = 0;
  }
  // Starts a segment of frames at next(). Requires pending() == 0.
  void BeginSegment(const CountedEvents& events);
  // Ends the frame under way at next(), which has been filled.
  Interval End() {
    const Snapshot& begin = current();
    ++current_;
    return {begin, current()};
  }
  // Requires that End was called since BeginSegment.
  Interval last() const { return {marks_[(current_ - 1) % kMarks], current()}; }

  size_t pending() const { return current_ - settled_; }
  // Returns the oldest frame that waits, and counts it as settled. Requires pending() != 0.
  Interval Settle() {
    const Snapshot& begin = marks_[settled_ % kMarks];
    ++frames_;
    return {begin, marks_[++settled_ % kMarks]};
  }
  // Bit i: event i had no number in a settled frame of this segment.
  void AddMissing(uint32_t missing) { missing_ |= missing; }

  // Returns the sums of all settled frames, and their number.
  Sums Total(const CountedEvents& events) const;
  uint64_t frames() const { return frames_; }

 private:
  static constexpr size_t kMarks = kMaxPending + 1;

  std::vector<Snapshot> marks_;
  size_t current_ = 0;
  size_t settled_ = 0;
  Snapshot first_{};  // The first mark of the segment.
  Sums before_;       // Sums of earlier segments.
  uint32_t missing_ = 0;
  uint64_t frames_ = 0;
};

}  // namespace perfkit::count
