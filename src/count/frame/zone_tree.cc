// The slow paths of ZoneTree: new nodes, dropped zones, the end of a frame.
//
// A zone is found among its parent's children by the address of its name, and by its text the first time that this
// address is used. At the end of a frame the open zones are split: their sums up to the mark belong to this frame, the
// rest to the next one. Only nodes that the frame has touched are closed, so the cost depends on the zones that the
// frame had, not on those that exist. The constructor allocates all memory, except for very long names.
#include "src/count/frame/zone_tree.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "src/base/scale.h"

namespace perfkit::count {
namespace {

uint64_t ToNs(uint64_t ticks, uint64_t ns_per_tick_q32) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>(Wide{ticks} * ns_per_tick_q32 >> 32);
}

// Bytes reserved for the name of each zone: most are shorter.
constexpr size_t kNameBytesPerZone = 64;

}  // namespace

ZoneTree::ZoneTree(const ZoneShape& shape)
    : shape_(shape),
      events_(shape.events, shape.multiplexable, shape.never),
      stack_(shape.max_depth),
      nodes_(std::min<size_t>(shape.max_zones, UINT16_MAX - 1) + 1),
      touched_(nodes_.size()),
      details_(nodes_.size()),
      names_(std::make_shared<NameArena>(nodes_.size() * kNameBytesPerZone)),
      index_(nodes_.size()),
      histograms_(nodes_.size(), events_.size()) {
  root_last_ = &details_[kRoot].last;
}

// Returns kRoot if there is neither such a child nor room for it: the root is the child of no node.
uint16_t ZoneTree::FindChild(uint16_t parent, ZoneId id) {
  if (id.name == nullptr) return kRoot;
  uint16_t child = index_.Find(parent, id.name);
  if (child == kRoot) {
    child = FindByText(parent, id.name);
    if (child == kRoot) child = AddChild(parent, id.name);
    if (child == kRoot) return kRoot;
    index_.Add(parent, id.name, child);
  }
  nodes_[child].key = id.name;  // the next visit most likely uses the same address
  return nodes_[parent].last_child = child;
}

// For the first visit from an address: linear in the number of siblings.
uint16_t ZoneTree::FindByText(uint16_t parent, const char* text) const {
  uint16_t child = nodes_[parent].first_child;
  while (child != kRoot && std::strcmp(name(child), text) != 0) child = nodes_[child].next_sibling;
  return child;
}

uint16_t ZoneTree::AddChild(uint16_t parent, const char* text) {
  if (node_count_ == nodes_.size()) return kRoot;
  const uint16_t child = static_cast<uint16_t>(node_count_++);
  details_[child].name = names_->Copy(text);
  nodes_[child].parent = parent;
  nodes_[child].next_sibling = nodes_[parent].first_child;
  nodes_[parent].first_child = child;
  return child;
}

void ZoneTree::Touch(uint16_t node) {
  nodes_[node].touched = true;
  touched_[touched_count_++] = node;
}

Snapshot* ZoneTree::Skip() {
  stack_.Skip();
  ++mistakes_.dropped;
  return nullptr;
}

bool ZoneTree::DropLeave() {
  if (stack_.skipped() != 0) {
    stack_.Unskip();
  } else {
    ++mistakes_.mismatched;
  }
  return true;
}

bool ZoneTree::UnwindTo(uint64_t entry) {
  const uint32_t depth = stack_.DepthOf(entry);
  if (depth == 0) return false;
  mistakes_.mismatched += stack_.TakeSkipped();
  while (stack_.counted() > depth) {
    if (stack_.is_top_abandoned()) {
      PopAbandoned();
    } else {
      ++mistakes_.mismatched;
      Leave();
    }
  }
  return true;
}

void ZoneTree::Abandon(uint64_t entry) {
  const uint32_t depth = stack_.DepthOf(entry);
  if (depth == 0) return;
  stack_.Abandon(depth);
  PopAbandoned();
}

void ZoneTree::CountNeverLeft() {
  uint64_t open = stack_.skipped();
  for (uint32_t depth = 1; depth <= stack_.counted(); ++depth) open += stack_[depth].abandoned ? 0 : 1;
  mistakes_.mismatched += open;
  closed_mistakes_.mismatched += open;
}

bool ZoneTree::PopAbandoned() {
  while (stack_.is_top_abandoned()) {
    RaiseToChildren(stack_.top().node);
    stack_.PopAbandoned();
  }
  return !stack_.has_abandoned();
}

// For a zone that has no number of its own: it counted at least the sums of its children, which lie within its
// interval.
void ZoneTree::RaiseToChildren(uint16_t node) {
  Sums children;
  for (uint16_t child = nodes_[node].first_child; child != kRoot; child = nodes_[child].next_sibling) {
    children.Merge(nodes_[child].sums);
  }
  events_.Raise(nodes_[node].sums, children);
  nodes_[node].sums.at_least = true;
}

void ZoneTree::BeginFrameAtScratch() {
  events_.Copy(scratch_, next_mark());
  BeginFrame();
}

const FrameRecord& ZoneTree::EndFrameAtScratch(uint64_t number, uint64_t ns_per_tick_q32) {
  events_.Copy(scratch_, next_mark());
  EndFrame(number, ns_per_tick_q32);
  FrameRecord& record = details_[kRoot].last;
  record.number = number;
  Settle(ns_per_tick_q32, record);
  return record;
}

void ZoneTree::Settle(uint64_t ns_per_tick_q32, FrameRecord& record) {
  root_last_ = &record;
  AddRoot(marks_.Settle(), ns_per_tick_q32, record);
}

void ZoneTree::AddRoot(const FrameMarks::Interval& frame, uint64_t ns_per_tick_q32, FrameRecord& record) {
  record.wall_ns = ToNs(frame.ticks(), ns_per_tick_q32);
  record.missing = events_.never() | events_.MissingBetween(frame.begin, frame.end);
  for (size_t block = 0; block < events_.blocks(); ++block) {
    for (size_t i = 4 * block; i < 4 * block + 4; ++i) record.values[i] = frame.end.values[i] - frame.begin.values[i];
  }
  histograms_.Add(kRoot, 0, record.wall_ns);
  const uint32_t multiplexed = events_.MultiplexedBetween(frame.begin, frame.end);
  if ((multiplexed | (record.missing & ~events_.never())) != 0) [[unlikely]]
    return AddRootScaled(frame, record);
  for (size_t i = 0; i < events_.size(); ++i) {
    if ((events_.never() >> i & 1) == 0) histograms_.Add(kRoot, 1 + i, record.values[i]);
  }
}

// An event that was never on the PMU in this frame is missing in the record, but not in the total.
void ZoneTree::AddRootScaled(const FrameMarks::Interval& frame, FrameRecord& record) {
  marks_.AddMissing(record.missing & ~events_.never());
  for (size_t i = 0; i < events_.size(); ++i) {
    if ((record.missing >> i & 1) != 0) continue;
    std::optional<uint64_t> value = record.values[i];
    if ((events_.multiplexable() >> i & 1) != 0) {
      const Snapshot::Times &begin = frame.begin.times[i], &end = frame.end.times[i];
      value = base::Scale(*value, end.enabled_ns - begin.enabled_ns, end.running_ns - begin.running_ns);
    }
    if (value) {
      histograms_.Add(kRoot, 1 + i, *value);
    } else {
      record.missing |= 1u << i;
    }
  }
}

void ZoneTree::CloseZones(const Snapshot& at, uint64_t number, uint64_t ns_per_tick_q32) {
  closed_count_ = node_count_;
  closed_mistakes_ = mistakes_;
  if (stack_.counted() != 0) SplitOpen(at);
  for (size_t t = 0; t < touched_count_; ++t) {
    nodes_[touched_[t]].touched = false;
    CloseFrame(touched_[t], number, ns_per_tick_q32, details_[touched_[t]].last);
  }
  touched_count_ = 0;
  // Zones that are still open belong to the next frame, too, even if nothing happens in them.
  for (uint32_t depth = 1; depth <= stack_.counted(); ++depth) {
    if (!nodes_[stack_[depth].node].touched) Touch(stack_[depth].node);
  }
}

void ZoneTree::SplitOpen(const Snapshot& at) {
  for (uint32_t depth = stack_.counted(); depth != 0; --depth) {  // children first, for RaiseToChildren
    ZoneStack::Open& open = stack_[depth];
    if (open.abandoned) {
      RaiseToChildren(open.node);
    } else {
      events_.Add(nodes_[open.node].sums, open.begin, at);
    }
    events_.Copy(at, open.begin);
  }
}

void ZoneTree::CloseFrame(uint16_t node, uint64_t number, uint64_t ns_per_tick_q32, FrameRecord& last) {
  Sums& sums = nodes_[node].sums;
  Detail& detail = details_[node];
  last.number = number;
  last.wall_ns = ToNs(sums.ticks, ns_per_tick_q32);
  // A part of the zone's counts is no count of its frame, and is in no histogram.
  const bool at_least = std::exchange(sums.at_least, false);
  last.missing = at_least ? ~0u : events_.never() | sums.missing;
  ++detail.frames;
  detail.total.calls += sums.calls;
  detail.total.ticks += sums.ticks;
  detail.total.missing |= sums.missing;
  detail.total.at_least |= at_least;
  sums.calls = sums.ticks = sums.missing = 0;
  for (size_t block = 0; block < events_.blocks(); ++block) {
    for (size_t i = 4 * block; i < 4 * block + 4; ++i) {
      last.values[i] = sums.values[i];
      detail.total.values[i] += sums.values[i];
      sums.values[i] = 0;
    }
  }
  if (!at_least) histograms_.Add(node, 0, last.wall_ns);
  const uint32_t special = events_.multiplexable() | last.missing;
  for (size_t i = 0; i < events_.size(); ++i) {
    if ((special >> i & 1) != 0) {
      AddToHistogram(node, i, last);
    } else {
      histograms_.Add(node, 1 + i, last.values[i]);
    }
  }
}

// For an event that may not have been counted for a part of the frame, or for all of it: then it is missing in `last`.
void ZoneTree::AddToHistogram(uint16_t node, size_t i, FrameRecord& last) {
  Snapshot::Times& times = nodes_[node].sums.times[i];
  Snapshot::Times& total = details_[node].total.times[i];
  const Snapshot::Times frame = times;
  times = {};
  total.enabled_ns += frame.enabled_ns;
  total.running_ns += frame.running_ns;
  if ((last.missing >> i & 1) != 0) return;
  std::optional<uint64_t> value = last.values[i];
  if (frame.enabled_ns != frame.running_ns || frame.enabled_ns == 0) {
    value = base::Scale(*value, frame.enabled_ns, frame.running_ns);
  }
  if (value) {
    histograms_.Add(node, 1 + i, *value);
  } else {
    last.missing |= 1u << i;
  }
}

void ZoneTree::CountSince(const Snapshot& begin, uint64_t ns_per_tick_q32, FrameRecord& record) const {
  Sums sums;
  events_.Add(sums, begin, scratch_);
  record.wall_ns = ToNs(sums.ticks, ns_per_tick_q32);
  record.values = sums.values;
  record.missing = events_.never() | sums.missing | events_.NeverOnPmu(sums);
}

void ZoneTree::DropFrame() {
  for (size_t t = 0; t < touched_count_; ++t) {
    nodes_[touched_[t]].sums = {};
    nodes_[touched_[t]].touched = false;
  }
  touched_count_ = 0;
  stack_.Clear();
}

}  // namespace perfkit::count
