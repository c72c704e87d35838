// Finds who wrote a record: from the id in it to the event and thread that write under that id, and to what a sample of
// that event represents.
//
// An id stays known as long as a ring may hold its records: the writers of open events, then those of events that were
// replaced, until their records have been read.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "src/base/id_table.h"
#include "src/sample/plan.h"
#include "src/sample/ring_set.h"
#include "src/sample/sample_weight.h"

namespace perfkit::sample {

// The event and thread that write under an id.
struct Writer {
  uint32_t event = RingEvent::kTracking;
  pid_t tid = 0;
  uint64_t id = 0;
  uint64_t rate = 0;       // Current rate: a period, or a frequency in Hz.
  SampleWeight weight;     // What each of its samples represents.
  bool retired = false;    // Its event was replaced.
  bool stackless = false;  // Its samples have no stack because of the budget.
};

// The last replacement of events: from before the new set was enabled until the old set, disabled since, is closed.
// Samples of the old set count before `at_ns`, samples of the new set from `at_ns` on, unless each occurrence is a
// sample (DuplicateFilter).
struct ReplacementOverlap {
  uint64_t from_ns = UINT64_MAX, at_ns = 0, to_ns = 0;

  bool Has(uint64_t time_ns) const { return from_ns <= time_ns && time_ns <= to_ns; }
};

// Not thread-safe. Nothing allocates but Rebuild and Retire.
class WriterIndex {
 public:
  // The plan must outlive the index.
  explicit WriterIndex(const Plan& plan) : plan_(plan) {}

  // Makes the index that of the events of `sets`, and of the retired writers. New events write from `since_ns` on, at
  // `level`.
  void Rebuild(std::initializer_list<const RingSet*> sets, const SamplingLevel& level, uint64_t since_ns);
  // Keeps the writer of an event that is about to be closed at `now_ns`, for the next Rebuild.
  void Retire(const RingEvent& ring_event, uint64_t now_ns);
  // Before the next Rebuild: forgets the retired writers whose records up to `drained_ns` have all been read; in rings
  // that overwrite, which may keep records for any time, all of them if they are many.
  void ForgetRetired(uint64_t drained_ns);
  // Forgets the weights of samples up to `drained_ns`, which have all been read.
  void ForgetWeights(uint64_t drained_ns);

  const std::vector<Writer>& writers() const { return writers_; }
  // Returns nullptr if the id is unknown.
  Writer* Find(uint64_t id) {
    const uint32_t found = ids_.Find(id);
    return found != base::IdTable::kNone ? &writers_[found] : nullptr;
  }
  const Writer* Find(uint64_t id) const {
    const uint32_t found = ids_.Find(id);
    return found != base::IdTable::kNone ? &writers_[found] : nullptr;
  }
  // As above, by the id in a record.
  const Writer* WriterOf(const RawRecord& raw) const {
    const std::optional<uint64_t> id = plan_.layout().IdOf(raw);
    return id ? Find(*id) : nullptr;
  }
  // Returns the sample's writer, or nullptr if no event of this sampler wrote it. Sets `foreign` if the sample was
  // prepared for another sampler's event.
  const Writer* WriterOf(const RawRecord& sample, bool& foreign) const {
    const Writer* const found = WriterOf(sample);
    foreign = found == nullptr;
    return foreign ? ForeignWriterOf(sample) : found;
  }
  // Returns what a sample of `writer` represents that was taken at `time_ns`.
  uint64_t WeightOf(const Writer& writer, uint64_t time_ns, bool foreign) const {
    return overlap_.Has(time_ns) ? WeightInOverlap(writer, time_ns, foreign) : writer.weight.At(time_ns);
  }
  // Returns what a sample of `writer` represents at least that was taken at an unknown time from `time_ns` on.
  uint64_t LeastWeightSince(const Writer& writer, uint64_t time_ns) const {
    const uint64_t weight = writer.weight.LeastSince(time_ns);
    return overlap_.to_ns < time_ns ? weight : std::min(weight, WeightInOverlap(writer, time_ns, true));
  }
  // Returns what each sample of `ring_event` represents now; 0 for events that are about to take over.
  uint64_t WeightNow(const RingEvent& ring_event) const {
    const Writer* const writer = Find(ring_event.id);
    return writer != nullptr ? writer->weight.now() : 0;
  }

  // Returns true if both the old event and the new one of `writer` sample each occurrence.
  bool SamplesEachInOverlap(const Writer& writer) const;

  // The last replacement of events, for samples that were taken meanwhile.
  ReplacementOverlap& overlap() { return overlap_; }
  const ReplacementOverlap& overlap() const { return overlap_; }

 private:
  // A writer whose event was replaced. Rings may still hold its records.
  struct Retired {
    Writer writer;
    uint64_t until_ns = 0;  // Its event was closed at this time.
  };

  Writer NewWriter(const RingEvent& ring_event, const std::vector<Writer>& before, const SamplingLevel& level,
                   uint64_t since_ns) const;
  void Add(Writer writer);
  void ChooseStandIn();
  const Writer* ForeignWriterOf(const RawRecord& sample) const;
  const SampleWeight& WeightsInOverlap(const Writer& writer) const;
  uint64_t WeightInOverlap(const Writer& writer, uint64_t time_ns, bool foreign) const;

  const Plan& plan_;
  base::IdTable ids_;            // To indices of writers_.
  std::vector<Writer> writers_;  // Of the open events, then of the retired ones.
  // The only writer that can have written samples with a foreign id; kNone if there are several.
  uint32_t stand_in_ = base::IdTable::kNone;
  std::vector<Retired> retired_;  // Oldest first.
  ReplacementOverlap overlap_;
};

}  // namespace perfkit::sample
