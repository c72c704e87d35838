// Builds the index of writers, and finds those of samples that another sampler's event was served for.
#include "src/sample/writer_index.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace perfkit::sample {

void WriterIndex::Add(Writer writer) {
  ids_.Add(writer.id, static_cast<uint32_t>(writers_.size()));
  writers_.push_back(std::move(writer));
}

// A sample with a foreign id does not say which of its event's writers wrote it. So each new writer has the earlier
// weights of the writers before it.
Writer WriterIndex::NewWriter(const RingEvent& ring_event, const std::vector<Writer>& before,
                              const SamplingLevel& level, uint64_t since_ns) const {
  Writer writer{.event = ring_event.event, .tid = ring_event.tid, .id = ring_event.id, .weight = {}};
  if (ring_event.event == RingEvent::kTracking) return writer;
  writer.rate = plan_.KernelRate(ring_event.event, level);
  writer.stackless = level.stack == 0 && plan_.events()[ring_event.event].stack;
  const auto same = std::ranges::find_if(
      before, [&](const Writer& other) { return other.event == ring_event.event && !other.retired; });
  const uint64_t weight = plan_.Represents(ring_event.event, level);
  writer.weight = same != before.end() ? same->weight : SampleWeight(weight);
  writer.weight.Change(since_ns, weight);
  return writer;
}

void WriterIndex::Rebuild(std::initializer_list<const RingSet*> sets, const SamplingLevel& level, uint64_t since_ns) {
  const base::IdTable ids_before = std::exchange(ids_, {});
  const std::vector<Writer> before = std::exchange(writers_, {});
  for (const RingSet* const set : sets) {
    for (const RingEvent& ring_event : set->events) {
      const uint32_t at = ids_before.Find(ring_event.id);
      Add(at != base::IdTable::kNone ? before[at] : NewWriter(ring_event, before, level, since_ns));
    }
  }
  ChooseStandIn();
  // After the choice of a stand-in, which must be an event that is open.
  for (const Retired& retired : retired_) Add(retired.writer);
}

void WriterIndex::ChooseStandIn() {
  stand_in_ = base::IdTable::kNone;
  bool several = false;
  for (uint32_t i = 0; i < writers_.size(); ++i) {
    const uint32_t event = writers_[i].event;
    if (event == RingEvent::kTracking || !plan_.events()[event].shares_samples) continue;
    several = several || (stand_in_ != base::IdTable::kNone && writers_[stand_in_].event != event);
    stand_in_ = i;
  }
  if (several) stand_in_ = base::IdTable::kNone;
}

void WriterIndex::Retire(const RingEvent& ring_event, uint64_t now_ns) {
  const Writer* const writer = Find(ring_event.id);
  if (writer == nullptr) return;
  retired_.push_back({*writer, now_ns});
  retired_.back().writer.retired = true;
}

// Samples whose id is dropped here count as foreign.
void WriterIndex::ForgetRetired(uint64_t drained_ns) {
  constexpr size_t kMaxOverwriting = 4096;
  if (plan_.options().mode == RingMode::kStream) {
    std::erase_if(retired_, [&](const Retired& old) { return old.until_ns < drained_ns; });
  } else if (retired_.size() > kMaxOverwriting) {
    retired_.clear();
  }
}

void WriterIndex::ForgetWeights(uint64_t drained_ns) {
  for (Writer& writer : writers_) writer.weight.Forget(drained_ns);
  for (Retired& old : retired_) old.writer.weight.Forget(drained_ns);
}

// Another sampler of the same software event on this thread may have been served first. Then the sample in this
// sampler's ring has that sampler's id, time and stack (do_perf_sw_event). Only this sampler's events write to its
// rings; if there are several, the sample's counts identify the event.
const Writer* WriterIndex::ForeignWriterOf(const RawRecord& sample) const {
  if (stand_in_ != base::IdTable::kNone) return &writers_[stand_in_];
  if (!plan_.layout().has(Field::kRead)) return nullptr;
  const std::optional<Sample> parsed = Sample::Parse(sample, plan_.layout());
  const std::optional<ReadValues> values = parsed ? parsed->read() : std::nullopt;
  return values && values->size() != 0 ? Find((*values)[0].id.value_or(0)) : nullptr;
}

// Writers of the new set have the weights of the old one.
const SampleWeight& WriterIndex::WeightsInOverlap(const Writer& writer) const {
  const auto current = std::ranges::find_if(
      writers_, [&](const Writer& other) { return !other.retired && other.event == writer.event; });
  return current != writers_.end() ? current->weight : writer.weight;
}

bool WriterIndex::SamplesEachInOverlap(const Writer& writer) const {
  if (plan_.SamplesEach(writer.event)) return true;
  if (!IsRaisedInCode(plan_.events()[writer.event])) return false;
  const SampleWeight& weight = WeightsInOverlap(writer);
  return weight.At(overlap_.from_ns) == 1 && weight.At(overlap_.to_ns) == 1;
}

// While both sets were on, a sample may carry the id of the other set (DuplicateFilter::CountsOnce). One with a foreign
// id may be of either set: the smaller weight is safe.
uint64_t WriterIndex::WeightInOverlap(const Writer& writer, uint64_t time_ns, bool foreign) const {
  const SampleWeight& weight = WeightsInOverlap(writer);
  return foreign ? std::min(weight.At(overlap_.from_ns), weight.At(overlap_.to_ns)) : weight.At(time_ns);
}

}  // namespace perfkit::sample
