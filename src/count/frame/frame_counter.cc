// FrameCounter's cold members: everything that is not a zone or a mark. The hot ones are in frame_counter_impl.cc,
// where the compiler can inline their implementation.
#include "perfkit/frame_counter.h"

#include <algorithm>

#include "perfkit/metric.h"
#include "src/count/frame/frame_counter_impl.h"
#include "src/count/frame/zone_report.h"

namespace perfkit {

FrameCounter::FrameCounter(const Options& options)
    // Not make_shared: a weak_ptr to it would keep its memory.
    : impl_(new count::FrameCounterImpl(options, enabled_, draining_)) {
  impl_->Start(options);
}

FrameCounter::~FrameCounter() { impl_->Close(); }

FrameId FrameCounter::DefineFrame(std::string_view name, std::chrono::nanoseconds budget) {
  return impl_->DefineFrame(name, budget.count() > 0 ? static_cast<uint64_t>(budget.count()) : 0);
}
ZoneId FrameCounter::DefineZone(std::string_view name) { return impl_->DefineZone(name); }

FrameCounter::AttachedThread FrameCounter::AttachThread(std::string_view name) {
  return AttachedThread(impl_->AttachNamed(name) ? impl_ : nullptr);
}

FrameCounter::AttachedThread::~AttachedThread() {
  if (impl_ != nullptr) impl_->DetachThisThread();
}

void FrameCounter::OnHitch(std::function<void(const Hitch&)> callback) { impl_->SetOnHitch(std::move(callback)); }

void FrameCounter::SetEnabled(bool enabled) {
  if (enabled == this->enabled()) return;
  if (!enabled) return impl_->SwitchOff();
  enabled_.store(impl_->MayCount(), std::memory_order_relaxed);  // each thread reopens its events at its next zone
}

const FrameRecord& FrameCounter::last() const { return impl_->history().last(); }
FrameHistory FrameCounter::history() const { return impl_->history().view(); }

FrameRecord FrameCounter::last(FrameId id) const {
  if (id.index == 0) return last();
  const count::FrameSequence* const sequence = impl_->sequence(id);
  return sequence != nullptr ? sequence->last() : FrameRecord();
}

std::vector<FrameRecord> FrameCounter::history(FrameId id) const {
  if (id.index == 0) {
    const FrameHistory main = history();
    std::vector<FrameRecord> records;
    for (size_t i = 0; i < main.size(); ++i) records.push_back(main[i]);
    return records;
  }
  const count::FrameSequence* const sequence = impl_->sequence(id);
  return sequence != nullptr ? sequence->records() : std::vector<FrameRecord>();
}

std::vector<ZoneStats> FrameCounter::zones() const {
  std::vector<ZoneStats> all;
  for (const count::FrameCounterImpl::Group& group : impl_->Groups()) count::AppendStats(*impl_, group, &all);
  return all;
}

std::vector<Hitch> FrameCounter::hitches() const {
  std::vector<Hitch> all;
  for (size_t i = 0; i < impl_->watch().kept(); ++i) all.push_back(impl_->watch()[i]);
  return all;
}

void FrameCounter::WorkerTotals(SlotTotals& out) const noexcept { impl_->Totals(out); }
FrameStats FrameCounter::Stats() const { return impl_->Stats(); }
std::string FrameCounter::FormatZones() const { return FormatZones({}); }
std::string FrameCounter::FormatZones(std::span<const Metric> metrics) const {
  return count::FormatReport(*impl_, metrics);
}

size_t FrameCounter::size() const { return impl_->plan().size(); }
std::string_view FrameCounter::name(size_t i) const { return i < size() ? impl_->plan().name(i) : ""; }
std::string_view FrameCounter::reason(size_t i) const { return i < size() ? impl_->plan().reason(i) : ""; }
ReadPath FrameCounter::path(size_t i) const { return i < size() ? impl_->plan().path(i) : ReadPath::kGroupRead; }

}  // namespace perfkit
