// Notices frames over their budget, and finds out why from what the kernel logged meanwhile.
//
// A frame within its budget costs two loads: where the detail rings stand. Only a hitch is looked into.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "perfkit/frame.h"
#include "src/count/frame/detail_ring.h"
#include "src/count/frame/zone_tree.h"

namespace perfkit::count {

// Which of a frame's events tell what else the kernel's log would.
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

  // For frames whose log is not known.
  void Substitute(const LogSubstitutes& substitutes) { substitutes_ = substitutes; }

  bool IsHitch(uint64_t wall_ns) const { return wall_ns > budget_ns_ && budget_ns_ != 0; }
  // Remembers where the rings stand: what comes next belongs to the next frame.
  void BeginFrame() {
    switches_from_ = switches_.Head();
    faults_from_ = faults_.Head();
  }
  // Looks into the frame that just ended in `tree`. Before BeginFrame of the next.
  const Hitch& Explain(const FrameRecord& record, const ZoneTree& tree);

  // The rings went away (counting was switched off); the budget stays.
  void Detach() { switches_ = faults_ = {}; }
  void Attach(const DetailRing& switches, const DetailRing& faults) {
    switches_ = switches;
    faults_ = faults;
    BeginFrame();
  }

  uint64_t count() const { return count_; }
  // The last kKept of them; `i` = 0 is the oldest that is kept.
  size_t kept() const { return count_ < kKept ? count_ : kKept; }
  const Hitch& operator[](size_t i) const { return hitches_[(count_ - kept() + i) % kKept]; }

 private:
  void TakeFromLog(Hitch* hitch) const;
  void TakeFromRecord(const FrameRecord& record, Hitch* hitch) const;

  uint64_t budget_ns_ = 0;
  LogSubstitutes substitutes_;
  DetailRing switches_, faults_;
  uint64_t switches_from_ = 0, faults_from_ = 0;
  uint64_t count_ = 0;
  std::array<Hitch, kKept> hitches_{};
};

// The zone of the last frame that exceeded its own median wall time most, as deep as it holds at least half of the
// excess: a parent exceeds whenever its child does. The root when none did.
struct WorstZone {
  size_t node = ZoneTree::kRoot;
  uint64_t excess_ns = 0;
};
WorstZone FindWorstZone(const ZoneTree& tree, uint64_t frame);

// The cause as a sentence, from the numbers of `hitch`.
void WriteCause(Hitch* hitch);

}  // namespace perfkit::count
