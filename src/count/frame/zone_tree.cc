// The part of the zone tree that is not on the way of every zone: new nodes, dropped ones, the end of a frame.
#include "src/count/frame/zone_tree.h"

#include <algorithm>
#include <optional>

#include "src/base/scale.h"

namespace perfkit::count {
namespace {

uint64_t ToNs(uint64_t ticks, uint64_t ns_per_tick_q32) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>(Wide{ticks} * ns_per_tick_q32 >> 32);
}

// Rows of histograms for each zone: few counters spread over more than one or two powers of two.
constexpr size_t kRowsPerZone = 8;

// Reserved for the names of zones: most are shorter.
constexpr size_t kNameBytesPerZone = 64;

}  // namespace

void Sums::Merge(const Sums& other) {
  calls += other.calls;
  ticks += other.ticks;
  missing |= other.missing;
  for (size_t i = 0; i < kMaxEvents; ++i) {
    values[i] += other.values[i];
    times[i].enabled_ns += other.times[i].enabled_ns;
    times[i].running_ns += other.times[i].running_ns;
  }
}

void Sums::Subtract(const Sums& other) {
  ticks -= other.ticks;
  missing |= other.missing;
  for (size_t i = 0; i < kMaxEvents; ++i) {
    values[i] -= other.values[i];
    times[i].enabled_ns -= other.times[i].enabled_ns;
    times[i].running_ns -= other.times[i].running_ns;
  }
}

ZoneTree::ZoneTree(const ZoneShape& shape)
    : shape_(shape),
      blocks_((std::min(shape.events, kMaxEvents) + 3) / 4),
      stride_(1 + std::min(shape.events, kMaxEvents)),
      max_depth_(static_cast<uint32_t>(shape.max_depth)),
      nodes_(std::min<size_t>(shape.max_zones, UINT16_MAX - 1) + 1),
      open_(shape.max_depth + 1),
      marks_(kMarks),
      touched_(nodes_.size()),
      details_(nodes_.size()),
      names_(std::make_shared<NameArena>(nodes_.size() * kNameBytesPerZone)),
      index_(nodes_.size()),
      pool_(std::min<size_t>(nodes_.size() * kRowsPerZone, UINT16_MAX - 1)),
      histograms_(nodes_.size() * stride_) {
  root_last_ = &details_[kRoot].last;
}

void ZoneTree::AddRest(Sums& sums, const Snapshot& begin, const Snapshot& end) const {
  for (uint32_t multiplexable = shape_.multiplexable; multiplexable != 0; multiplexable &= multiplexable - 1) {
    const size_t i = static_cast<size_t>(__builtin_ctz(multiplexable));
    sums.times[i].enabled_ns += end.times[i].enabled_ns - begin.times[i].enabled_ns;
    sums.times[i].running_ns += end.times[i].running_ns - begin.times[i].running_ns;
  }
  sums.missing |= MissingBetween(begin, end);
}

uint16_t ZoneTree::FindChild(uint16_t parent, ZoneId id) {
  if (id.name == nullptr) return kRoot;
  uint16_t child = index_.Find(parent, id.name);
  if (child == kRoot) {
    child = FindByText(parent, id.name);
    if (child == kRoot) child = AddChild(parent, id.name);
    if (child == kRoot) return kRoot;
    index_.Add(parent, id.name, child);
  }
  nodes_[child].key = id.name;  // the next one most likely comes from the same place
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
  ++skipped_;
  ++dropped_;
  return nullptr;
}

bool ZoneTree::DropLeave() {
  if (skipped_ != 0) {
    --skipped_;
  } else {
    ++mismatched_;
  }
  return true;
}

uint32_t ZoneTree::DepthOf(uint64_t entry) const {
  if (entry == 0) return 0;
  uint32_t depth = depth_;
  while (depth != 0 && open_[depth].entry != entry) --depth;
  return depth;
}

bool ZoneTree::UnwindTo(uint64_t entry) {
  const uint32_t depth = DepthOf(entry);
  if (depth == 0) return false;
  mismatched_ += skipped_;
  skipped_ = 0;
  while (depth_ > depth) {
    if (open_[depth_].abandoned) {
      PopAbandoned();
    } else {
      ++mismatched_;
      Leave();
    }
  }
  return true;
}

void ZoneTree::Abandon(uint64_t entry) {
  const uint32_t depth = DepthOf(entry);
  if (depth == 0) return;
  abandoned_ += open_[depth].abandoned ? 0 : 1;
  open_[depth].abandoned = true;
  PopAbandoned();
}

bool ZoneTree::PopAbandoned() {
  for (; skipped_ == 0 && open_[depth_].abandoned; --depth_, --abandoned_) {
    RaiseToChildren(open_[depth_].node);
    open_[depth_].abandoned = false;
  }
  return abandoned_ == 0;
}

// The least that is true of a zone that has no number of its own: the sums of its children lie within its interval.
void ZoneTree::RaiseToChildren(uint16_t node) {
  Sums children;
  for (uint16_t child = nodes_[node].first_child; child != kRoot; child = nodes_[child].next_sibling) {
    children.Merge(nodes_[child].sums);
  }
  Sums& sums = nodes_[node].sums;
  sums.ticks = std::max(sums.ticks, children.ticks);
  sums.missing |= children.missing;
  for (size_t i = 0; i < shape_.events; ++i) {
    sums.values[i] = std::max(sums.values[i], children.values[i]);
    sums.times[i].enabled_ns = std::max(sums.times[i].enabled_ns, children.times[i].enabled_ns);
    sums.times[i].running_ns = std::max(sums.times[i].running_ns, children.times[i].running_ns);
  }
}

void ZoneTree::CopyUsed(const Snapshot& from, Snapshot& to) const {
  to.ticks = from.ticks;
  to.missing = from.missing;
  for (size_t i = 0; i < 4 * blocks_; ++i) to.values[i] = from.values[i];
  for (uint32_t multiplexable = shape_.multiplexable; multiplexable != 0; multiplexable &= multiplexable - 1) {
    const size_t i = static_cast<size_t>(__builtin_ctz(multiplexable));
    to.times[i] = from.times[i];
  }
}

void ZoneTree::BeginFrameAtScratch() {
  CopyUsed(scratch_, next_mark());
  BeginFrame();
}

const FrameRecord& ZoneTree::EndFrameAtScratch(uint64_t number, uint64_t ns_per_tick_q32) {
  CopyUsed(scratch_, next_mark());
  EndFrame(number, ns_per_tick_q32);
  FrameRecord& record = details_[kRoot].last;
  record.number = number;
  Settle(ns_per_tick_q32, record);
  return record;
}

uint32_t ZoneTree::MultiplexedInLastFrame() const {
  const Snapshot& begin = marks_[(mark_ - 1) % kMarks];
  const Snapshot& end = marks_[mark_ % kMarks];
  uint32_t found = 0;
  for (uint32_t multiplexable = shape_.multiplexable; multiplexable != 0; multiplexable &= multiplexable - 1) {
    const size_t i = static_cast<size_t>(__builtin_ctz(multiplexable));
    const uint64_t enabled_ns = end.times[i].enabled_ns - begin.times[i].enabled_ns;
    if (enabled_ns != end.times[i].running_ns - begin.times[i].running_ns) found |= 1u << i;
  }
  return found;
}

// What the marks so far say goes to root_before_: a new series of marks starts.
void ZoneTree::BeginFrame() {
  root_before_ = RootTotal();
  root_missing_ = 0;
  settled_ = ++mark_;
  first_mark_ = marks_[mark_ % kMarks];
}

Sums ZoneTree::RootTotal() const {
  const Snapshot& last_mark = marks_[settled_ % kMarks];
  Sums total = root_before_;
  Sums since;
  since.ticks = last_mark.ticks - first_mark_.ticks;
  for (size_t i = 0; i < shape_.events; ++i) since.values[i] = last_mark.values[i] - first_mark_.values[i];
  for (uint32_t multiplexable = shape_.multiplexable; multiplexable != 0; multiplexable &= multiplexable - 1) {
    const size_t i = static_cast<size_t>(__builtin_ctz(multiplexable));
    since.times[i].enabled_ns = last_mark.times[i].enabled_ns - first_mark_.times[i].enabled_ns;
    since.times[i].running_ns = last_mark.times[i].running_ns - first_mark_.times[i].running_ns;
  }
  since.missing = root_missing_;
  total.Merge(since);
  total.calls = root_frames_;
  return total;
}

void ZoneTree::Settle(uint64_t ns_per_tick_q32, FrameRecord& record) {
  const Snapshot& begin = marks_[settled_ % kMarks];
  const Snapshot& at = marks_[++settled_ % kMarks];
  ++root_frames_;
  root_last_ = &record;
  AddRoot(begin, at, ns_per_tick_q32, record);
}

void ZoneTree::AddRoot(const Snapshot& begin, const Snapshot& at, uint64_t ns_per_tick_q32, FrameRecord& record) {
  record.wall_ns = ToNs(at.ticks - begin.ticks, ns_per_tick_q32);
  record.missing = shape_.never | MissingBetween(begin, at);
  for (size_t block = 0; block < blocks_; ++block) {
    for (size_t i = 4 * block; i < 4 * block + 4; ++i) record.values[i] = at.values[i] - begin.values[i];
  }
  histograms_[0].Add(record.wall_ns, pool_);
  uint64_t not_running = 0;  // of events that share a counter
  for (uint32_t multiplexable = shape_.multiplexable; multiplexable != 0; multiplexable &= multiplexable - 1) {
    const size_t i = static_cast<size_t>(__builtin_ctz(multiplexable));
    not_running |=
        (at.times[i].enabled_ns - begin.times[i].enabled_ns) ^ (at.times[i].running_ns - begin.times[i].running_ns);
  }
  if ((not_running | (record.missing & ~shape_.never)) != 0) [[unlikely]]
    return AddRootScaled(begin, at, record);
  for (size_t i = 0; i < shape_.events; ++i) {
    if ((shape_.never >> i & 1) == 0) histograms_[1 + i].Add(record.values[i], pool_);
  }
}

void ZoneTree::AddRootScaled(const Snapshot& begin, const Snapshot& at, const FrameRecord& record) {
  root_missing_ |= record.missing & ~shape_.never;
  for (size_t i = 0; i < shape_.events; ++i) {
    if ((record.missing >> i & 1) != 0) continue;
    std::optional<uint64_t> value = record.values[i];
    if ((shape_.multiplexable >> i & 1) != 0) {
      value = base::Scale(*value, at.times[i].enabled_ns - begin.times[i].enabled_ns,
                          at.times[i].running_ns - begin.times[i].running_ns);
    }
    if (value) histograms_[1 + i].Add(*value, pool_);
  }
}

void ZoneTree::CloseZones(const Snapshot& at, uint64_t number, uint64_t ns_per_tick_q32) {
  closed_count_ = node_count_;
  closed_dropped_ = dropped_;
  closed_mismatched_ = mismatched_;
  if (depth_ != 0) SplitOpen(at);
  for (size_t t = 0; t < touched_count_; ++t) {
    nodes_[touched_[t]].touched = false;
    CloseFrame(touched_[t], number, ns_per_tick_q32, details_[touched_[t]].last);
  }
  touched_count_ = 0;
  for (uint32_t d = 1; d <= depth_; ++d) {
    if (!nodes_[open_[d].node].touched) Touch(open_[d].node);
  }
}

void ZoneTree::SplitOpen(const Snapshot& at) {
  for (uint32_t d = depth_; d != 0; --d) {  // children first, for RaiseToChildren
    if (open_[d].abandoned) {
      RaiseToChildren(open_[d].node);
    } else {
      Add(nodes_[open_[d].node].sums, open_[d].begin, at);
    }
    CopyUsed(at, open_[d].begin);
  }
}

void ZoneTree::CloseFrame(uint16_t node, uint64_t number, uint64_t ns_per_tick_q32, FrameRecord& last) {
  Sums& sums = nodes_[node].sums;
  Detail& detail = details_[node];
  last.number = number;
  last.wall_ns = ToNs(sums.ticks, ns_per_tick_q32);
  last.missing = shape_.never | sums.missing;
  ++detail.frames;
  detail.total.calls += sums.calls;
  detail.total.ticks += sums.ticks;
  detail.total.missing |= sums.missing;
  sums.calls = sums.ticks = sums.missing = 0;
  for (size_t block = 0; block < blocks_; ++block) {
    for (size_t i = 4 * block; i < 4 * block + 4; ++i) {
      last.values[i] = sums.values[i];
      detail.total.values[i] += sums.values[i];
      sums.values[i] = 0;
    }
  }
  Histogram* const histograms = &histograms_[node * stride_];
  histograms[0].Add(last.wall_ns, pool_);
  const uint32_t special = shape_.multiplexable | last.missing;
  for (size_t i = 0; i < shape_.events; ++i) {
    if ((special >> i & 1) != 0) {
      AddToHistogram(node, i, last);
    } else {
      histograms[1 + i].Add(last.values[i], pool_);
    }
  }
}

// An event that may have been missed for a part of the frame, or for all of it.
void ZoneTree::AddToHistogram(uint16_t node, size_t i, const FrameRecord& last) {
  Snapshot::Times& times = nodes_[node].sums.times[i];
  Snapshot::Times& total = details_[node].total.times[i];
  const Snapshot::Times frame = times;
  times = {};
  total.enabled_ns += frame.enabled_ns;
  total.running_ns += frame.running_ns;
  if ((last.missing >> i & 1) != 0) return;
  Histogram& histogram = histograms_[node * stride_ + 1 + i];
  if (frame.enabled_ns == frame.running_ns && frame.enabled_ns != 0) return histogram.Add(last.values[i], pool_);
  const auto scaled = base::Scale(last.values[i], frame.enabled_ns, frame.running_ns);
  if (scaled) histogram.Add(*scaled, pool_);
}

void ZoneTree::DropFrame() {
  for (size_t t = 0; t < touched_count_; ++t) {
    nodes_[touched_[t]].sums = {};
    nodes_[touched_[t]].touched = false;
  }
  touched_count_ = 0;
  for (uint32_t d = 1; d <= depth_; ++d) open_[d].abandoned = false;
  depth_ = skipped_ = abandoned_ = 0;
}

}  // namespace perfkit::count
