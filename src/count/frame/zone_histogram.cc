// Finds the parts of distributions, and reads them in the order of their steps.
#include "src/count/frame/zone_histogram.h"

#include <new>
#include <span>

namespace perfkit::count {
namespace {

constexpr size_t kPartsOfRow = RowPool::kSteps / HistogramPart::kSteps;

}  // namespace

HistogramPart* HistogramParts::Take(ZoneMemory& memory) {
  if (left_ == 0) return nullptr;
  std::byte* const piece = memory.Take(sizeof(HistogramPart), alignof(HistogramPart));
  if (piece == nullptr) return nullptr;
  --left_;
  return new (piece) HistogramPart;
}

bool ZoneHistogram::BringForward(size_t index, const HistogramSource& source) {
  HistogramPart*& first = parts_[index % 2];
  for (HistogramPart** link = &first; *link != nullptr; link = &(*link)->next) {
    HistogramPart* const part = *link;
    if (part->index != index) continue;
    *link = part->next;
    part->next = first;
    first = part;
    return true;
  }
  HistogramPart* const part = source.parts.Take(source.memory);
  if (part == nullptr) {
    source.parts.AddUnplaced(run_);
    return false;
  }
  part->index = index;
  part->next = first;
  first = part;
  return true;
}

void ZoneHistogram::AddTo(Histogram& sum, RowPool& pool) const {
  sum.RaiseMax(max());
  ForEachPart([&](const HistogramPart& part) { sum.AddSteps(part.index * HistogramPart::kSteps, part.counts, pool); });
  if (run_ != 0) {
    const size_t row = Histogram::RowOf(last_value_);
    sum.AddSteps(row * RowPool::kSteps + Histogram::StepOf(last_value_, row), std::span(&run_, 1), pool);
  }
}

uint64_t ZoneHistogram::count() const {
  uint64_t sum = run_;
  ForEachPart([&](const HistogramPart& part) {
    for (const uint32_t count : part.counts) sum += count;
  });
  return sum;
}

uint64_t ZoneHistogram::Quantile(double fraction) const {
  const uint64_t placed = count();
  if (placed == 0) return max();
  std::array<const HistogramPart*, Histogram::kRows * kPartsOfRow> by_index{};
  ForEachPart([&](const HistogramPart& part) { by_index[part.index] = &part; });
  const size_t last_row = Histogram::RowOf(last_value_);
  const size_t last_step = last_row * RowPool::kSteps + Histogram::StepOf(last_value_, last_row);
  const uint64_t rank = Histogram::RankOf(fraction, placed);
  uint64_t seen = 0;
  for (size_t index = 0; index < by_index.size(); ++index) {
    if (by_index[index] == nullptr && index != last_step / HistogramPart::kSteps) continue;
    for (size_t i = 0; i < HistogramPart::kSteps; ++i) {
      const size_t step = index * HistogramPart::kSteps + i;
      seen += (by_index[index] != nullptr ? by_index[index]->counts[i] : 0) + (step == last_step ? run_ : 0);
      if (seen >= rank) return std::min(Histogram::TopOf(step / RowPool::kSteps, step % RowPool::kSteps), max());
    }
  }
  return max();
}

}  // namespace perfkit::count
