// The slow paths of ZoneTree: new nodes, dropped zones, the end of a frame.
//
// A zone is found among its parent's children by the address of its name, and by its text the first time that this
// address is used. At the end of a frame the open zones are split: their sums up to the mark belong to this frame, the
// rest to the next one. Only nodes that the frame has touched are closed, so the cost depends on the zones that the
// frame had, not on those that exist. The constructor allocates memory for some zones, and more is mapped when they
// need it, so that a thread with few zones takes little.
#include "src/count/frame/zone_tree.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "src/base/scale.h"

namespace perfkit::count {
namespace {

// The key of the root, which is the name of no zone. So it differs from each name that Enter is given, also nullptr.
constexpr char kRootKey[] = "";

// Few counters spread over more than one or two powers of two.
constexpr size_t kPartsPerZone = 16;

constexpr size_t kStepBytes = 8192;  // of memory

}  // namespace

ZoneTree::ZoneTree(const ZoneShape& shape)
    : shape_(shape),
      events_(shape.events, shape.multiplexable, shape.never),
      nodes_(events_, std::min<size_t>(shape.max_zones, UINT16_MAX - 1) + 1),
      memory_(nodes_.first_bytes() + ZoneIndex::kFirstBytes + ZoneStack::kFirstBytes + shape.spare_bytes, kStepBytes),
      root_(nodes_.Add(kRootKey, memory_)),
      index_(nodes_.max_zones(), memory_),
      stack_(shape.max_depth, root_, memory_),
      marks_(shape.max_pending),
      names_(std::make_shared<NameArena>()),
      parts_(nodes_.max_zones() * kPartsPerZone) {
  root_->parent = root_->last_child = root_;  // So that a node that is looked up always has one.
}

Snapshot* ZoneTree::EnterOther(ZoneId id) {
  if (!stack_.has_room() && !stack_.MakeRoom(memory_)) return Skip();
  ZoneNode& parent = *stack_.top().node;
  ZoneNode* const child = parent.last_child->key == id.name ? parent.last_child : FindChild(parent, id);
  if (child == nullptr) return Skip();
  if (!child->touched) Touch(*child);
  return &Push(*child);
}

// Returns nullptr if there is neither such a child nor room for it.
ZoneNode* ZoneTree::FindChild(ZoneNode& parent, ZoneId id) {
  if (id.name == nullptr) return nullptr;
  const uint16_t known = index_.Find(parent.index, id.name);
  ZoneNode* child = known != kRoot ? &nodes_[known] : nullptr;
  if (child == nullptr) {
    child = FindByText(parent, id.name);
    if (child == nullptr) child = AddChild(parent, id.name);
    if (child == nullptr) return nullptr;
    index_.Add(parent.index, id.name, child->index, memory_);
  }
  child->key = id.name;  // the next visit most likely uses the same address
  return parent.last_child = child;
}

// For the first visit from an address: linear in the number of siblings.
ZoneNode* ZoneTree::FindByText(const ZoneNode& parent, const char* text) const {
  ZoneNode* child = parent.first_child;
  while (child != nullptr && std::strcmp(nodes_.detail(*child).name, text) != 0) child = child->next_sibling;
  return child;
}

// Room comes first: a zone that has none, and is dropped again and again, must not take memory for its name each time.
ZoneNode* ZoneTree::AddChild(ZoneNode& parent, const char* text) {
  if (!nodes_.MakeRoom(memory_)) return nullptr;
  const char* const name = names_->Copy(text);
  ZoneNode* const child = name != nullptr ? nodes_.Add(kRootKey, memory_) : nullptr;
  if (child == nullptr) return nullptr;
  nodes_.detail(*child).name = name;
  child->parent = &parent;
  child->last_child = root_;
  child->next_sibling = parent.first_child;
  parent.first_child = child;
  return child;
}

void ZoneTree::Touch(ZoneNode& node) {
  node.touched = true;
  nodes_.detail(node).next_touched = touched_;
  touched_ = &node;
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
    RaiseToChildren(*stack_.top().node);
    stack_.PopAbandoned();
  }
  return !stack_.has_abandoned();
}

// For a zone that has no number of its own: it counted at least the sums of its children, which lie within its
// interval.
void ZoneTree::RaiseToChildren(ZoneNode& node) {
  Sums children;
  for (ZoneNode* child = node.first_child; child != nullptr; child = child->next_sibling) {
    children.Merge(nodes_.Load(*child));
  }
  Sums sums = nodes_.Load(node);
  events_.Raise(sums, children);
  sums.at_least = true;
  nodes_.Store(sums, node);
}

void ZoneTree::BeginFrameAtScratch() {
  marks_.Rewind(events_);
  events_.Copy(scratch_, next_mark());
  BeginFrame();
}

const FrameRecord& ZoneTree::EndFrameAtScratch(uint64_t number, uint64_t ns_per_tick_q32) {
  marks_.Rewind(events_);
  events_.Copy(scratch_, next_mark());
  EndFrame(number, ns_per_tick_q32);
  own_last_.number = number;
  Settle(ns_per_tick_q32, own_last_);
  root_last_ = nullptr;
  return own_last_;
}

void ZoneTree::Settle(uint64_t ns_per_tick_q32, FrameRecord& record) {
  root_last_ = &record;
  AddRoot(marks_.Settle(), ns_per_tick_q32, record);
}

void ZoneTree::AddRoot(const FrameMarks::Interval& frame, uint64_t ns_per_tick_q32, FrameRecord& record) {
  record.wall_ns = TicksToNs(frame.ticks(), ns_per_tick_q32);
  record.missing = events_.never() | events_.MissingBetween(frame.begin, frame.end);
  events_.ForEachValue([&](size_t i) { record.values[i] = frame.end.values[i] - frame.begin.values[i]; });
  ZoneHistogram* const histograms = nodes_.histograms(*root_);
  const HistogramSource source{parts_, memory_};
  histograms[0].Add(record.wall_ns, source);
  const uint32_t multiplexed = events_.MultiplexedBetween(frame.begin, frame.end);
  if ((multiplexed | (record.missing & ~events_.never())) != 0) [[unlikely]]
    return AddRootScaled(frame, record);
  const uint32_t never = events_.never();
  for (size_t i = 0, size = events_.size(); i < size; ++i) {
    if ((never >> i & 1) == 0) histograms[1 + i].Add(record.values[i], source);
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
      AddToHistogram(*root_, 1 + i, *value);
    } else {
      record.missing |= 1u << i;
    }
  }
}

void ZoneTree::CloseZones(const Snapshot& at, uint64_t number, uint64_t ns_per_tick_q32) {
  closed_count_ = nodes_.size();
  closed_mistakes_ = mistakes_;
  if (stack_.has_counted()) SplitOpen(at);
  for (ZoneNode* node = std::exchange(touched_, nullptr); node != nullptr; node = nodes_.detail(*node).next_touched) {
    node->touched = false;
    CloseFrame(*node, number, ns_per_tick_q32);
  }
  // Zones that are still open belong to the next frame, too, even if nothing happens in them.
  for (uint32_t depth = 1; depth <= stack_.counted(); ++depth) {
    if (!stack_[depth].node->touched) Touch(*stack_[depth].node);
  }
}

void ZoneTree::SplitOpen(const Snapshot& at) {
  for (uint32_t depth = stack_.counted(); depth != 0; --depth) {  // children first, for RaiseToChildren
    ZoneStack::Open& open = stack_[depth];
    if (open.abandoned) {
      RaiseToChildren(*open.node);
    } else {
      AddTo(*open.node, open.begin, at);
    }
    events_.Copy(at, open.begin);
  }
}

void ZoneTree::CloseFrame(ZoneNode& node, uint64_t number, uint64_t ns_per_tick_q32) {
  ZoneDetail& detail = nodes_.detail(node);
  detail.last_number = number;
  detail.last_wall_ns = TicksToNs(node.ticks, ns_per_tick_q32);
  // A part of the zone's counts is no count of its frame, and is in no histogram.
  const bool at_least = std::exchange(node.at_least, false);
  detail.last_missing = at_least ? ~0u : events_.never() | node.missing;
  ++detail.frames;
  detail.calls += std::exchange(node.calls, 0);
  detail.ticks += std::exchange(node.ticks, 0);
  detail.missing |= std::exchange(node.missing, 0);
  detail.at_least |= at_least;
  uint64_t* const total = nodes_.total_values(node);
  uint64_t* const last = nodes_.last_values(node);
  events_.ForEachValue([&](size_t i) {
    last[i] = std::exchange(node.values()[i], 0);
    total[i] += last[i];
  });
  if (!at_least) AddToHistogram(node, 0, detail.last_wall_ns);
  for (size_t i = 0; i < events_.size(); ++i) {
    if ((events_.multiplexable() >> i & 1) != 0) {
      AddTimes(node, i, last[i], detail.last_missing);
    } else if ((detail.last_missing >> i & 1) == 0) {
      AddToHistogram(node, 1 + i, last[i]);
    }
  }
}

// For an event that may not have been on the PMU for a part of the frame, or for all of it: then it is added to
// `missing`.
void ZoneTree::AddTimes(ZoneNode& node, size_t i, uint64_t value, uint32_t& missing) {
  Snapshot::Times& total = nodes_.total_times(node)[i];
  const Snapshot::Times frame = std::exchange(nodes_.times(node)[i], {});
  total.enabled_ns += frame.enabled_ns;
  total.running_ns += frame.running_ns;
  if ((missing >> i & 1) != 0) return;
  std::optional<uint64_t> scaled = value;
  if (frame.enabled_ns != frame.running_ns || frame.enabled_ns == 0) {
    scaled = base::Scale(value, frame.enabled_ns, frame.running_ns);
  }
  if (scaled) {
    AddToHistogram(node, 1 + i, *scaled);
  } else {
    missing |= 1u << i;
  }
}

void ZoneTree::CountSince(const Snapshot& begin, uint64_t ns_per_tick_q32, FrameRecord& record) const {
  Sums sums;
  events_.Add(sums, begin, scratch_);
  record.wall_ns = TicksToNs(sums.ticks, ns_per_tick_q32);
  record.values = sums.values;
  record.missing = events_.never() | sums.missing | events_.NeverOnPmu(sums);
}

void ZoneTree::DropFrame() {
  for (ZoneNode* node = std::exchange(touched_, nullptr); node != nullptr; node = nodes_.detail(*node).next_touched) {
    nodes_.Store({}, *node);
    node->touched = false;
  }
  stack_.Clear();
}

}  // namespace perfkit::count
