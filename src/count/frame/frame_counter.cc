// FrameCounter's cold members: everything that is not a zone or a mark.
#include "perfkit/frame_counter.h"

#include <algorithm>

#include "src/count/frame/frame_core.h"
#include "src/count/frame/zone_report.h"

namespace perfkit {

FrameCounter::FrameCounter(const Options& options)
    : core_(std::make_shared<count::FrameCore>(options, enabled_, draining_)) {
  core_->Start(core_);
}

FrameCounter::~FrameCounter() { core_->Close(); }

FrameId FrameCounter::DefineFrame(std::string_view name) { return core_->DefineFrame(name); }
ZoneId FrameCounter::DefineZone(std::string_view name) { return core_->DefineZone(name); }

FrameCounter::AttachedThread FrameCounter::AttachThread(std::string_view name) {
  return AttachedThread(core_->AttachNamed(name) ? core_ : nullptr);
}

FrameCounter::AttachedThread::~AttachedThread() {
  if (core_ != nullptr) core_->DetachThisThread();
}

void FrameCounter::OnHitch(std::function<void(const Hitch&)> callback) { core_->SetOnHitch(std::move(callback)); }

void FrameCounter::SetEnabled(bool enabled) {
  if (enabled == this->enabled()) return;
  if (!enabled) return core_->SwitchOff();
  enabled_.store(core_->MayCount(), std::memory_order_relaxed);  // threads re-open their events when they find out
}

const FrameRecord& FrameCounter::last() const { return core_->history().last(); }
FrameHistory FrameCounter::history() const { return core_->history().view(); }

FrameRecord FrameCounter::last(FrameId id) const {
  if (id.index == 0) return last();
  const count::FrameChain* const chain = core_->chain(id);
  return chain != nullptr ? chain->last() : FrameRecord();
}

std::vector<FrameRecord> FrameCounter::history(FrameId id) const {
  const count::FrameChain* const chain = core_->chain(id);
  return chain != nullptr ? chain->records() : std::vector<FrameRecord>();
}

std::vector<ZoneStats> FrameCounter::zones() const {
  std::vector<ZoneStats> all;
  for (const count::FrameCore::Group& group : core_->Groups()) count::AppendStats(*core_, group, &all);
  return all;
}

std::vector<Hitch> FrameCounter::hitches() const {
  std::vector<Hitch> all;
  for (size_t i = 0; i < core_->watch().kept(); ++i) all.push_back(core_->watch()[i]);
  return all;
}

void FrameCounter::WorkerTotals(SlotTotals& out) const noexcept { core_->Totals(out); }
FrameStats FrameCounter::Stats() const { return core_->Stats(); }
std::string FrameCounter::FormatZones() const { return count::FormatReport(*core_); }

size_t FrameCounter::size() const { return core_->plan().size(); }
std::string_view FrameCounter::name(size_t i) const { return i < size() ? core_->plan().name(i) : ""; }
std::string_view FrameCounter::reason(size_t i) const { return i < size() ? core_->plan().reason(i) : ""; }
ReadPath FrameCounter::path(size_t i) const { return i < size() ? core_->plan().path(i) : ReadPath::kGroupRead; }

}  // namespace perfkit
