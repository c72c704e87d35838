// Finds the frames that exceed their budget, and explains them from what the kernel logged meanwhile.
//
// A frame within its budget costs a few loads, of the heads of the detail rings and the newest fault. Only hitches are
// examined.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "perfkit/frame.h"
#include "src/count/frame/detail_ring.h"
#include "src/count/frame/zone_tree.h"

namespace perfkit::count {

// Indexes of the events whose counts replace a ring of the kernel's log that could not be opened; nullopt if no event
// does.
struct LogSubstitutes {
  std::optional<size_t> task_clock, page_faults, context_switches, migrations;
};

class HitchWatch {
 public:
  static constexpr size_t kKept = 64;

  HitchWatch() = default;  // no budget: nothing is a hitch
  HitchWatch(uint64_t budget_ns, const DetailRing& switches, const DetailRing& faults)
      : budget_ns_(budget_ns), switches_(switches), faults_(faults) {
    BeginFrame();
  }

  // Sets what is used if the rings of the log could not be opened.
  void Substitute(const LogSubstitutes& substitutes) { substitutes_ = substitutes; }

  bool IsHitch(uint64_t wall_ns) const { return wall_ns > budget_ns_ && budget_ns_ != 0; }
  // Stores where the rings are: later records belong to the next frame.
  void BeginFrame() {
    switches_from_ = switches_.Head();
    faults_from_ = MarkFaults(faults_);
  }
  // Examines the frame that has just ended in `tree`. Requires that BeginFrame was not called since.
  const Hitch& Explain(const FrameRecord& record, const ZoneTree& tree);

  // Forgets the rings, when counting is disabled. Keeps the budget.
  void Detach() { switches_ = faults_ = {}; }
  void Attach(const DetailRing& switches, const DetailRing& faults) {
    switches_ = switches;
    faults_ = faults;
    BeginFrame();
  }

  uint64_t count() const { return count_; }
  // The last kKept hitches; index 0 is the oldest that is kept.
  size_t kept() const { return count_ < kKept ? count_ : kKept; }
  const Hitch& operator[](size_t i) const { return hitches_[(count_ - kept() + i) % kKept]; }

 private:
  void TakeFromLog(Hitch* hitch) const;
  // `multiplexed`: the events whose counts in the record are too low (ZoneTree::MultiplexedInLastFrame).
  void TakeFromRecord(const FrameRecord& record, uint32_t multiplexed, Hitch* hitch) const;

  uint64_t budget_ns_ = 0;
  LogSubstitutes substitutes_;
  DetailRing switches_, faults_;
  uint64_t switches_from_ = 0;
  FaultMark faults_from_;
  uint64_t count_ = 0;
  std::array<Hitch, kKept> hitches_{};
};

struct WorstZone {
  size_t node = ZoneTree::kRoot;
  uint64_t excess_ns = 0;
};
// Returns the zone whose wall time in the tree's last frame, number `frame`, exceeds its own median most. A parent
// exceeds its median whenever a child does, so the search descends to a child that has at least half of the excess.
// Returns the root if no zone exceeds its median.
WorstZone FindWorstZone(const ZoneTree& tree, uint64_t frame);

// Writes Hitch::cause, a sentence, from the other members.
void WriteCause(Hitch* hitch);

}  // namespace perfkit::count
