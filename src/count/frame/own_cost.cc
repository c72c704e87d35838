// The calibration takes medians over rounds of empty zones, so that an interrupt in one round has no effect. It runs
// twice: the difference of the results is the error of subtracting a cost (OwnCost::residue).
#include "src/count/frame/own_cost.h"

#include <algorithm>
#include <cmath>

namespace perfkit::count {
namespace {

constexpr int kRounds = 15;
constexpr int kZones = 32;  // in each round

using Costs = std::array<double, 1 + kMaxEvents>;

void EmptyZone(FrameThread& thread, const char* name) {
  if (Snapshot* const begin = thread.tree.Enter({name})) thread.Read(*begin);
  if (thread.tree.SkipLeave()) return;
  thread.Read(thread.tree.scratch());
  thread.tree.Leave();
}

// The results of one round, per empty zone: what it counted itself, and its whole cost for its parent.
struct Round {
  Costs within{}, whole{};
};

Round RunRound(FrameThread& thread, uint64_t ns_per_tick_q32, uint64_t number) {
  if (Snapshot* const begin = thread.tree.Enter({"outer"})) thread.Read(*begin);
  for (int i = 0; i < kZones; ++i) EmptyZone(thread, i % 2 == 0 ? "empty" : "its sibling");
  thread.Read(thread.tree.scratch());
  if (!thread.tree.SkipLeave()) thread.tree.Leave();
  thread.tree.EndFrameAtScratch(number, ns_per_tick_q32);
  Round round;
  const FrameRecord& outer = thread.tree.last(1);
  const FrameRecord& empty = thread.tree.last(2);
  const FrameRecord& sibling = thread.tree.last(3);
  // The outer zone counts half of each of its own two readings: together as much as one more zone.
  round.within[0] = static_cast<double>(empty.wall_ns + sibling.wall_ns) / kZones;
  round.whole[0] = static_cast<double>(outer.wall_ns) / (kZones + 1);
  for (size_t i = 0; i < thread.tree.shape().events; ++i) {
    if (((empty.missing | sibling.missing) >> i & 1) != 0) continue;
    round.within[1 + i] = static_cast<double>(empty.values[i] + sibling.values[i]) / kZones;
    round.whole[1 + i] = static_cast<double>(outer.values[i]) / (kZones + 1);
  }
  return round;
}

double Median(std::array<double, kRounds> values) {
  std::nth_element(values.begin(), values.begin() + kRounds / 2, values.end());
  return values[kRounds / 2];
}

Round RunRounds(FrameThread& thread, uint64_t ns_per_tick_q32) {
  std::array<Round, kRounds> rounds;
  for (int r = 0; r < kRounds; ++r) rounds[r] = RunRound(thread, ns_per_tick_q32, static_cast<uint64_t>(r));
  Round median;
  for (size_t c = 0; c < median.within.size(); ++c) {
    std::array<double, kRounds> within, whole;
    for (int r = 0; r < kRounds; ++r) {
      within[r] = rounds[r].within[c];
      whole[r] = rounds[r].whole[c];
    }
    median.within[c] = Median(within);
    median.whole[c] = Median(whole);
  }
  return median;
}

void SettleAll(ZoneTree& tree, uint64_t ns_per_tick_q32) {
  FrameRecord ignored;
  while (tree.pending() != 0) tree.Settle(ns_per_tick_q32, ignored);
}

double MeasureMark(FrameThread& thread, uint64_t ns_per_tick_q32) {
  std::array<double, kRounds> costs;
  for (int r = 0; r < kRounds; ++r) {
    const uint64_t start = ReadTicks();
    for (int i = 0; i < kZones; ++i) {
      thread.Read(thread.tree.next_mark());
      thread.tree.EndFrame(static_cast<uint64_t>(i), ns_per_tick_q32);
      if (thread.tree.pending() == ZoneTree::kMaxPending) SettleAll(thread.tree, ns_per_tick_q32);
    }
    costs[r] = static_cast<double>(ReadTicks() - start) / kZones * static_cast<double>(ns_per_tick_q32) * 0x1p-32;
  }
  return Median(costs);
}

void ReplaceTree(FrameThread& thread, const ZoneShape& shape) {
  thread.tree = ZoneTree(shape);
  thread.tree.SetEntryBase(thread.serial << FrameThread::kSerialShift);
  thread.tree.SetGapped(thread.reader.gapped());
}

}  // namespace

OwnCost MeasureOwnCost(FrameThread& thread, uint64_t ns_per_tick_q32) {
  const ZoneShape shape = thread.tree.shape();
  ZoneShape roomy = shape;  // Has room for the zones of a round.
  roomy.max_zones = std::max<decltype(roomy.max_zones)>(roomy.max_zones, 3);
  roomy.max_depth = std::max<decltype(roomy.max_depth)>(roomy.max_depth, 2);
  ReplaceTree(thread, roomy);
  RunRounds(thread, ns_per_tick_q32);  // warms the caches up
  const Round first = RunRounds(thread, ns_per_tick_q32);
  const Round second = RunRounds(thread, ns_per_tick_q32);
  OwnCost cost;
  for (size_t c = 0; c < cost.within.size(); ++c) {
    cost.within[c] = first.within[c];
    cost.around[c] = std::max(0.0, first.whole[c] - first.within[c]);
    cost.residue[c] = std::abs(second.whole[c] - first.whole[c]);
  }
  cost.mark_ns = MeasureMark(thread, ns_per_tick_q32);
  ReplaceTree(thread, shape);
  return cost;
}

}  // namespace perfkit::count
