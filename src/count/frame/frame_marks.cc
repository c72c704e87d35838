// The sums of frames. Frames of a segment have no gaps between them, so the sum of all of them is the last mark minus
// the first. before_ has the sums of earlier segments.
#include "src/count/frame/frame_marks.h"

namespace perfkit::count {

void FrameMarks::BeginSegment(const CountedEvents& events) {
  before_ = Total(events);
  missing_ = 0;
  settled_ = ++current_;
  first_ = current();
}

Sums FrameMarks::Total(const CountedEvents& events) const {
  const Snapshot& last = marks_[settled_ % kMarks];
  Sums total = before_;
  Sums since;
  since.ticks = last.ticks - first_.ticks;
  for (size_t i = 0; i < events.size(); ++i) since.values[i] = last.values[i] - first_.values[i];
  for (uint32_t left = events.multiplexable(); left != 0; left &= left - 1) {
    const size_t i = static_cast<size_t>(__builtin_ctz(left));
    since.times[i].enabled_ns = last.times[i].enabled_ns - first_.times[i].enabled_ns;
    since.times[i].running_ns = last.times[i].running_ns - first_.times[i].running_ns;
  }
  since.missing = missing_;
  total.Merge(since);
  total.calls = frames_;
  return total;
}

}  // namespace perfkit::count
