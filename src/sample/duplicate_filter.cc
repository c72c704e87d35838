// Keeps the inheritance maps of all generations of events, and compares samples of the same time.
#include "src/sample/duplicate_filter.h"

#include <utility>

#include "src/ring/record_fields.h"

namespace perfkit::sample {

template <class Each>
void DuplicateFilter::ForEach(Each&& each) {
  each(current_);
  each(side_);
  each(retired_);
  if (has_fresh_) each(fresh_);
}

void DuplicateFilter::AddAttached(pid_t tid, uint64_t now_ns, bool tracking) {
  current_.AddAttached(tid, now_ns);
  if (tracking) side_.AddAttached(tid, now_ns);
}

void DuplicateFilter::ExpectDuplicates(bool tracking) {
  current_.ExpectDuplicates();
  if (tracking) side_.ExpectDuplicates();
}

bool DuplicateFilter::NeedsTasks() const {
  return has_fresh_ || current_.expects_duplicates() || side_.expects_duplicates() || retired_.expects_duplicates();
}

void DuplicateFilter::Born(pid_t tid, pid_t parent, uint64_t time_ns) {
  ForEach([&](InheritanceMap& inheritance) { inheritance.Born(tid, parent, time_ns); });
}

void DuplicateFilter::Ended(pid_t tid, uint64_t time_ns) {
  ForEach([&](InheritanceMap& inheritance) { inheritance.Ended(tid, time_ns); });
}

// While new events are opened, AddAttached and ExpectDuplicates are about these. So their map is `current_` meanwhile,
// and that of the open events waits in `fresh_`; EndOpening exchanges the two.
void DuplicateFilter::BeginOpening() { fresh_ = std::exchange(current_, InheritanceMap()); }

void DuplicateFilter::EndOpening(bool opened) {
  std::swap(current_, fresh_);
  has_fresh_ = opened;
}

void DuplicateFilter::TakeOver() {
  retired_ = std::exchange(current_, std::exchange(fresh_, InheritanceMap()));
  has_fresh_ = false;
}

uint32_t DuplicateFilter::TidOf(const RawRecord& raw) const {
  const SampleLayout& layout = plan_.layout();
  const std::byte* const task = ring::Is(raw, RecordType::kSample)
                                    ? raw.body().data() + layout.early_offset(Field::kTid)
                                    : raw.data + raw.size - layout.trailer_offset(Field::kTid);
  return detail::Load<uint32_t>(task + sizeof(uint32_t));  // pid, tid
}

// If the kernel samples each occurrence, both events write a sample while both are enabled on the thread. A time cannot
// decide which one counts: an event may be enabled or disabled while an occurrence is served, and then only one of the
// two samples it. So each sample counts, unless its twin came just before. The newer event is served first
// (hlist_add_head_rcu in perf_swevent_add and perf_trace_add), and in between an interrupt may raise the event, too.
// Debug registers are served in their order, by one interrupt.
bool DuplicateFilter::CountsInOverlap(const Writer& writer, uint64_t time_ns, bool foreign,
                                      RingSlot::Last& last) const {
  constexpr uint64_t kOneInterruptNs = 1'000'000;
  const ReplacementOverlap& overlap = writers_.overlap();
  // A foreign id does not tell whether the old event or the new one wrote the sample.
  if (!overlap.Has(time_ns) || foreign) return true;
  if (!writers_.SamplesEachInOverlap(writer)) return (time_ns < overlap.at_ns) == writer.retired;
  const bool at_once = plan_.IsBreakpoint(writer.event), is_first = writer.retired == at_once;
  if (is_first) {
    last.unpaired = at_once ? 1 : last.unpaired + 1;
    return true;
  }
  if (last.unpaired == 0 || (at_once && time_ns - last.time_ns > kOneInterruptNs)) return true;
  --last.unpaired;
  return false;
}

// Linux prepares a software event's sample once for all its events on a thread, including the id (do_perf_sw_event, 6.2
// to 6.18 at least). If a thread has two copies of an event, both samples have the id of the copy that was served
// first. So of two samples at the same time, exactly one counts, no matter which. The writer of a foreign sample is a
// stand-in, whose thread says nothing about the sample's.
bool DuplicateFilter::CountsOneOfTwo(const RawRecord& sample, const Writer& writer, std::vector<RingSlot::Last>& lasts,
                                     uint64_t time_ns, bool foreign) {
  const ReplacementOverlap& overlap = writers_.overlap();
  lasts.resize(plan_.events().size());
  RingSlot::Last& last = lasts[writer.event];
  const uint32_t tid = TidOf(sample);
  // As the kernel wrote it: if that is another sampler's, `time_ns` may be the same for several samples.
  const uint64_t written_ns = plan_.layout().TimeOf(sample).value_or(0);
  if (last.tid != tid || !overlap.Has(last.time_ns)) last.unpaired = 0;
  // Looking at the previous sample of this event in this ring is enough: one interrupt or call writes both twins.
  const bool twin = last.time_ns == written_ns && last.tid == tid;
  bool counts = false;
  if (twin) {
    counts = !last.given;
    last.unpaired -= last.unpaired != 0 ? 1 : 0;
  } else {
    counts = (foreign || Counts(sample, writer)) && CountsInOverlap(writer, time_ns, foreign, last);
  }
  last = {written_ns, tid, last.unpaired, counts || (twin && last.given)};
  return counts;
}

}  // namespace perfkit::sample
