// Decides which of several samples of one occurrence counts. A thread may have several copies of an event: it has
// inherited one and was attached as well, or its events are being replaced and both sets are enabled.
//
// Exactly one sample of each occurrence counts. An InheritanceMap says which copy that is, one for each generation of
// events: those that are open, those of the side band, those that were replaced and whose records are still in the
// rings, and those that are being opened to replace the open ones.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "src/sample/inheritance_map.h"
#include "src/sample/writer_index.h"

namespace perfkit::sample {

// Not thread-safe.
class DuplicateFilter {
 public:
  // The plan and the index must outlive the filter.
  DuplicateFilter(const Plan& plan, const WriterIndex& writers) : plan_(plan), writers_(writers) {}

  // The events of a thread are about to be opened. `tracking`: those of the side band, too.
  void AddAttached(pid_t tid, uint64_t now_ns, bool tracking);
  bool IsAttached(pid_t tid) const { return current_.IsAttached(tid); }
  // Threads with two copies of an event may exist from now on.
  void ExpectDuplicates(bool tracking);
  bool expects_duplicates() const { return current_.expects_duplicates(); }
  // Returns true if FORK and EXIT records are needed to know the owners of any generation's events.
  bool NeedsTasks() const;

  // Add FORK and EXIT records.
  void Born(pid_t tid, pid_t parent, uint64_t time_ns);
  void Ended(pid_t tid, uint64_t time_ns);
  // FORK or EXIT records were lost, so a tid may belong to another thread by now. Replaced events have known owners;
  // duplicates in the side band do no harm.
  void ForgetSideBand() { side_ = InheritanceMap(); }

  // The open events are about to be replaced. Between these two the threads that are added are those of the new
  // events.
  void BeginOpening();
  void EndOpening(bool opened);
  // The new events were closed instead.
  void DropFresh() { has_fresh_ = false; }
  // The new events replace the open ones.
  void TakeOver();

  // Returns false if the record is a duplicate.
  bool Counts(const RawRecord& raw, const Writer& writer) {
    InheritanceMap& inheritance = InheritanceOf(writer);
    return !inheritance.expects_duplicates() || inheritance.Counts(static_cast<pid_t>(TidOf(raw)), writer.tid);
  }
  // Returns false if the sample is a duplicate, also one of an overlap. `last`: that of its ring.
  bool CountsOnce(const RawRecord& sample, const Writer& writer, std::vector<RingSlot::Last>& last, uint64_t time_ns,
                  bool foreign) {
    if (!writers_.overlap().Has(time_ns) && !InheritanceOf(writer).expects_duplicates()) return true;
    return CountsOneOfTwo(sample, writer, last, time_ns, foreign);
  }

 private:
  template <class Each>
  void ForEach(Each&& each);
  InheritanceMap& InheritanceOf(const Writer& writer) {
    if (writer.event == RingEvent::kTracking) return side_;
    return writer.retired ? retired_ : current_;
  }
  // Requires that the record is long enough.
  uint32_t TidOf(const RawRecord& raw) const;
  // Returns true if a sample that has no twin of the same time counts. `last`: the sample before it.
  bool CountsInOverlap(const Writer& writer, uint64_t time_ns, bool foreign, RingSlot::Last& last) const;
  bool CountsOneOfTwo(const RawRecord& sample, const Writer& writer, std::vector<RingSlot::Last>& last,
                      uint64_t time_ns, bool foreign);

  const Plan& plan_;
  const WriterIndex& writers_;
  InheritanceMap current_;
  InheritanceMap side_;  // These events are not replaced when the others are.
  InheritanceMap retired_;
  InheritanceMap fresh_;    // Of the new events; between BeginOpening and EndOpening, of the open ones.
  bool has_fresh_ = false;  // New events are open.
};

}  // namespace perfkit::sample
