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

// The part that was used last is the likeliest one.
HistogramPart* ZoneHistogram::Find(size_t index) {
  for (HistogramPart** link = &parts_; *link != nullptr; link = &(*link)->next) {
    HistogramPart* const part = *link;
    if (part->index != index) continue;
    *link = part->next;
    part->next = parts_;
    return parts_ = part;
  }
  return nullptr;
}

// Moves the run of the last value to its part.
void ZoneHistogram::Settle(const HistogramSource& source) {
  if (run_ == 0) return;
  max_ = std::max(max_, last_value_);
  const size_t row = Histogram::RowOf(last_value_);
  const size_t step = Histogram::StepOf(last_value_, row);
  HistogramPart* part = Find(IndexOf(row, step));
  if (part == nullptr) {
    part = source.parts.Take(source.memory);
    if (part != nullptr) {
      part->index = IndexOf(row, step);
      part->next = parts_;
      parts_ = part;
    }
  }
  if (part != nullptr) {
    part->counts[step % HistogramPart::kSteps] += run_;
  } else {
    source.parts.AddUnplaced(run_);
  }
  run_ = 0;
}

void ZoneHistogram::AddTo(Histogram& sum, RowPool& pool) const {
  sum.RaiseMax(max());
  for (const HistogramPart* part = parts_; part != nullptr; part = part->next) {
    sum.AddSteps(part->index * HistogramPart::kSteps, part->counts, pool);
  }
  if (run_ != 0) {
    const size_t row = Histogram::RowOf(last_value_);
    sum.AddSteps(row * RowPool::kSteps + Histogram::StepOf(last_value_, row), std::span(&run_, 1), pool);
  }
}

uint64_t ZoneHistogram::count() const {
  uint64_t sum = run_;
  for (const HistogramPart* part = parts_; part != nullptr; part = part->next) {
    for (const uint32_t count : part->counts) sum += count;
  }
  return sum;
}

uint64_t ZoneHistogram::Quantile(double fraction) const {
  const uint64_t placed = count();
  if (placed == 0) return max();
  std::array<const HistogramPart*, Histogram::kRows * kPartsOfRow> by_index{};
  for (const HistogramPart* part = parts_; part != nullptr; part = part->next) by_index[part->index] = part;
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
