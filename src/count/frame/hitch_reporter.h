// Explains the marking thread's frames that exceed their budget, and calls the program's callback.
//
// The kernel's detail log is open only if there is a budget, and while counting is on. A frame within its budget costs
// two loads (HitchWatch).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "src/count/frame/detail_log.h"
#include "src/count/frame/hitch_watch.h"

namespace perfkit::count {

// For the marking thread only.
class HitchReporter {
 public:
  // `budget_ns`: 0 means that no frame is late. `ns_per_tick_q32`: nanoseconds per tick, in units of 2^-32; 0 means
  // that there are no ticks.
  HitchReporter(uint64_t budget_ns, uint64_t ns_per_tick_q32) : budget_ns_(budget_ns), watch_(budget_ns, {}, {}) {
    if (ns_per_tick_q32 == 0) return;
    const double ticks = static_cast<double>(budget_ns) / static_cast<double>(ns_per_tick_q32) * 0x1p32;
    budget_ticks_ = ticks < 0x1p64 ? static_cast<uint64_t>(ticks) : UINT64_MAX;
  }

  void Substitute(const LogSubstitutes& substitutes) { watch_.Substitute(substitutes); }
  void SetCallback(std::function<void(const Hitch&)> callback) {
    callback_ = std::make_shared<const std::function<void(const Hitch&)>>(std::move(callback));
  }
  void DropCallback() { callback_ = nullptr; }

  uint64_t budget_ns() const { return budget_ns_; }
  bool has_budget() const { return budget_ns_ != 0; }  // Not budget_ticks_: less than one tick is 0 there.
  bool IsLate(uint64_t ticks) const { return ticks > budget_ticks_; }

  // Opens the detail log for the calling thread.
  void OpenLog() {
    if (has_budget()) log_.Open();
  }
  // To be called when a segment of frames begins.
  void BeginSegment() { watch_.Attach(log_.switches(), log_.faults()); }
  void BeginFrame() { watch_.BeginFrame(); }
  // Explains the late frame that has just ended in `tree`. Requires that BeginFrame was not called since. The result is
  // valid until the next call.
  const Hitch& Explain(const FrameRecord& record, const ZoneTree& tree) { return watch_.Explain(record, tree); }
  // Calls the program's callback, which may set another one.
  void Tell(const Hitch& hitch) const {
    const auto callback = callback_;
    if (callback != nullptr && *callback) (*callback)(hitch);
  }
  // Closes the detail log, when counting is disabled. Keeps the hitches.
  void Close() {
    watch_.Detach();
    log_.Close();
  }
  void OnForkedChild() {
    watch_.Detach();
    log_.OnForkedChild();
  }

  const HitchWatch& watch() const { return watch_; }

 private:
  uint64_t budget_ns_;
  uint64_t budget_ticks_ = 0;  // budget_ns_, rounded down.
  HitchWatch watch_;
  DetailLog log_;
  std::shared_ptr<const std::function<void(const Hitch&)>> callback_;
};

}  // namespace perfkit::count
