// Explains a late frame: how long the thread was off the CPU and why, in a sentence, and which zone took longer than
// usual. If a ring of the kernel's log could not be opened, the frame's own counts replace it as far as its events go.
// If records were overwritten, the numbers are lower bounds, and the sentence says so. Nothing allocates, so that a
// late frame does not become later: the last hitches and their texts are in arrays of fixed size.
#include "src/count/frame/hitch_watch.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace perfkit::count {
namespace {

// Appends to a fixed array of characters, and stops at its end.
class Sentence {
 public:
  explicit Sentence(std::span<char> out) : out_(out) {}

  __attribute__((format(printf, 2, 3))) void Add(const char* format, ...) {
    if (used_ + 1 >= out_.size()) return;
    va_list arguments;
    va_start(arguments, format);
    const int wanted = std::vsnprintf(out_.data() + used_, out_.size() - used_, format, arguments);
    va_end(arguments);
    if (wanted > 0) used_ = std::min(used_ + static_cast<size_t>(wanted), out_.size() - 1);
  }
  // Milliseconds with two decimals, in integers: printf may allocate for floating point.
  void AddMs(uint64_t ns) {
    const uint64_t hundredths = (ns + 5'000) / 10'000;
    Add("%llu.%02llu ms", static_cast<unsigned long long>(hundredths / 100),
        static_cast<unsigned long long>(hundredths % 100));
  }
  void AddTimes(const char* what, uint64_t times, uint64_t ns, const char* prefix) {
    if (times == 0) return;
    Add("%s%s%s %llu time%s for ", first_ ? "" : "; ", what, prefix, static_cast<unsigned long long>(times),
        times == 1 ? "" : "s");
    AddMs(ns);
    first_ = false;
  }
  void AddOffCpu(uint64_t ns) {
    if (ns < 5'000) return;  // 0.00 ms
    Add("%soff the CPU for ", first_ ? "" : "; ");
    AddMs(ns);
    first_ = false;
  }
  void AddCount(uint64_t count, const char* what, const char* plural, const char* prefix) {
    if (count == 0) return;
    Add("%s%s%llu %s%s", first_ ? "" : "; ", prefix, static_cast<unsigned long long>(count), what,
        count == 1 ? "" : plural);
    first_ = false;
  }
  bool first() const { return first_; }

 private:
  std::span<char> out_;
  size_t used_ = 0;
  bool first_ = true;
};

// Returns by how much the zone exceeds its median over all frames. The median of a zone that most frames do not have is
// 0. So a zone that runs once, e.g. to load a level, counts in full. A zone of which a call ended on another thread in
// this frame has no excess: its elapsed time is a lower bound, and frames like it are in no median.
uint64_t ExcessOf(const ZoneTree& tree, size_t node, uint64_t frame) {
  const FrameRecord last = tree.last(node);
  if (last.number != frame || tree.frames(node) == 0 || last.missing == ~0u) return 0;
  // The first time of a zone would be its own median, so it counts in full.
  const bool rare = tree.frames(node) == 1 || 2 * tree.frames(node) < tree.frames(ZoneTree::kRoot);
  const uint64_t median = rare ? 0 : tree.histogram(node, 0).Quantile(0.5);
  return last.wall_ns > median ? last.wall_ns - median : 0;
}

}  // namespace

WorstZone FindWorstZone(const ZoneTree& tree, uint64_t frame) {
  WorstZone worst;
  for (size_t node = 1; node < tree.size(); ++node) {
    const uint64_t excess = ExcessOf(tree, node, frame);
    if (excess > worst.excess_ns) worst = {node, excess};
  }
  // Children have higher indexes than their parents, so one pass descends to the leaves.
  for (size_t node = worst.node + 1; worst.node != ZoneTree::kRoot && node < tree.size(); ++node) {
    if (tree.parent(node) != worst.node) continue;
    const uint64_t excess = ExcessOf(tree, node, frame);
    if (2 * excess >= worst.excess_ns && excess > 0) worst = {node, excess};
  }
  return worst;
}

void WriteCause(Hitch* hitch) {
  Sentence text(hitch->cause);
  const char* const at_least = hitch->at_least ? "at least " : "";
  const char* const at_least_after = hitch->at_least ? " at least" : "";
  const bool preempted_more = hitch->preempted_ns >= hitch->waited_ns;
  if (preempted_more) text.AddTimes("preempted", hitch->preemptions, hitch->preempted_ns, at_least_after);
  text.AddTimes("waited", hitch->waits, hitch->waited_ns, at_least_after);
  if (!preempted_more) text.AddTimes("preempted", hitch->preemptions, hitch->preempted_ns, at_least_after);
  text.AddOffCpu(hitch->off_cpu_ns);
  text.AddCount(hitch->switches, "switch", "es", "");
  text.AddCount(hitch->faults, "page fault", "s", "");
  if (hitch->fault_address_count > 0) {
    text.Add(", from 0x%llx on", static_cast<unsigned long long>(hitch->fault_addresses[0]));
  }
  text.AddCount(hitch->migrations, "migration", "s", at_least);
  const uint64_t off_cpu_ns = hitch->switches_known ? hitch->preempted_ns + hitch->waited_ns : hitch->off_cpu_ns;
  const bool knows_off_cpu = hitch->switches_known || hitch->off_cpu_known;
  if (knows_off_cpu && hitch->wall_ns > off_cpu_ns && hitch->wall_ns - off_cpu_ns > hitch->budget_ns) {
    text.Add(text.first() ? "ran " : "; ran ");
    text.AddMs(hitch->wall_ns - off_cpu_ns);
    text.Add(" itself");
  } else if (text.first()) {
    text.Add("the kernel does not tell");
  }
}

void HitchWatch::TakeFromLog(Hitch* hitch) const {
  hitch->switches_known = hitch->migrations_known = switches_.known();
  hitch->faults_known = faults_.known();
  const SwitchTally switches = TallySwitches(switches_, switches_from_);
  hitch->preemptions = switches.preemptions;
  hitch->preempted_ns = switches.preempted_ns;
  hitch->waits = switches.waits;
  hitch->waited_ns = switches.waited_ns;
  hitch->migrations = switches.migrations;
  hitch->at_least = switches.at_least;
  const FaultTally faults = TallyFaults(faults_, faults_from_, hitch->fault_addresses);
  hitch->faults = faults.faults;
  hitch->fault_address_count = faults.addresses;
}

void HitchWatch::TakeFromRecord(const FrameRecord& record, uint32_t multiplexed, Hitch* hitch) const {
  const auto counted = [inexact = record.missing | multiplexed](std::optional<size_t> event) {
    return event.has_value() && (inexact >> *event & 1) == 0;
  };
  if (!hitch->faults_known && counted(substitutes_.page_faults)) {
    hitch->faults_known = true;
    hitch->faults = record.values[*substitutes_.page_faults];
  }
  if (hitch->switches_known) return;
  hitch->off_cpu_known = counted(substitutes_.task_clock);
  hitch->switch_count_known = counted(substitutes_.context_switches);
  if (hitch->off_cpu_known) {
    const uint64_t cpu_ns = record.values[*substitutes_.task_clock];
    hitch->off_cpu_ns = record.wall_ns > cpu_ns ? record.wall_ns - cpu_ns : 0;
  }
  if (hitch->switch_count_known) hitch->switches = record.values[*substitutes_.context_switches];
  hitch->migrations_known = counted(substitutes_.migrations);
  if (hitch->migrations_known) hitch->migrations = record.values[*substitutes_.migrations];
}

const Hitch& HitchWatch::Explain(const FrameRecord& record, const ZoneTree& tree) {
  Hitch& hitch = hitches_[count_++ % kKept];
  hitch = {};
  hitch.frame = record.number;
  hitch.wall_ns = record.wall_ns;
  hitch.budget_ns = budget_ns_;
  TakeFromLog(&hitch);
  TakeFromRecord(record, tree.MultiplexedInLastFrame(), &hitch);
  const WorstZone worst = FindWorstZone(tree, record.number);
  if (worst.node != ZoneTree::kRoot) hitch.worst_zone = tree.name(worst.node);
  hitch.worst_excess_ns = worst.excess_ns;
  WriteCause(&hitch);
  return hitch;
}

}  // namespace perfkit::count
