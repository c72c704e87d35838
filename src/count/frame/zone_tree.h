// The zones of one thread: a tree of sums, and the stack of zones that are open now.
//
// ZoneTree does not read counters: it returns references to the snapshots that callers fill, so that its arithmetic can
// be tested without a kernel. A zone's sum goes to its own node only; a parent's sum contains its children's because
// their snapshots lie within its own. So children + self = parent holds by construction.
//
//   nodes_[0] ── the frame itself              marks_     the frame, since the last Mark
//     ├─ "physics" ── "solve"                  stack_[1]  "physics", since it was entered (or since the last Mark)
//     └─ "draw"                                stack_[2]  "solve"
//
// Its memory grows: when a zone is entered for the first time, or from a new address of its name; when the stack
// becomes deeper than ever; and, at the end of a frame, by values that differ from those before. Apart from its
// construction, nothing calls malloc (ZoneMemory). A zone for which there is no memory is dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "perfkit/frame.h"
#include "src/count/frame/counted_events.h"
#include "src/count/frame/frame_marks.h"
#include "src/count/frame/name_arena.h"
#include "src/count/frame/zone_histogram.h"
#include "src/count/frame/zone_index.h"
#include "src/count/frame/zone_memory.h"
#include "src/count/frame/zone_nodes.h"
#include "src/count/frame/zone_stack.h"

namespace perfkit::count {

// The events and the capacity of a tree, fixed at construction.
struct ZoneShape {
  size_t events = 0;
  uint32_t multiplexable = 0;  // bit i: event i has times of its own
  uint32_t never = 0;          // bit i: event i is never counted; its value in a snapshot is meaningless
  size_t max_zones = 256;
  size_t max_depth = 64;
  // Maximum number of frames that may wait for Settle; 1 if the AtScratch functions begin and end all frames.
  size_t max_pending = FrameMarks::kMaxPending;
  size_t spare_bytes = 0;  // Bytes that are allocated at construction beyond what a few zones need.
};

// For one thread at a time.
class ZoneTree {
 public:
  static constexpr uint16_t kRoot = 0;

  explicit ZoneTree(const ZoneShape& shape);

  // Sets which events are counted from records in later snapshots (CounterReader::gapped).
  void SetGapped(uint32_t gapped) { events_.SetGapped(gapped); }
  uint32_t gapped() const { return events_.gapped(); }

  // Opens a zone below the innermost one. Returns its first snapshot, for the caller to fill; nullptr if the zone is
  // dropped (too deep, or too many). Either way it has to be left.
  Snapshot* Enter(ZoneId id) {
    ZoneNode* const child = SameChild(id);
    return child != nullptr ? &Push(*child) : EnterOther(id);
  }
  // Return the zone if it is the one that was entered last below the innermost zone, in this frame, and there is room
  // on the stack; and open it. If SameChild returns nullptr, Enter has more to do.
  ZoneNode* SameChild(ZoneId id) const {
    ZoneNode* const child = stack_.top().node->last_child;
    return child->key == id.name && child->touched && stack_.has_room() ? child : nullptr;
  }
  Snapshot& Push(ZoneNode& same_child) { return stack_.Push(same_child).begin; }

  // Returns the id of the innermost visit of a zone, from its Enter to its Leave; 0 for a dropped zone, or if none is
  // open.
  uint64_t top_entry() const { return stack_.top_entry(); }
  // Returns true if this visit is the innermost one, and not of a dropped zone.
  bool IsTop(uint64_t entry) const { return entry != 0 && stack_.top_entry() == entry; }
  // Makes the ids of visits differ from those of other trees.
  void SetEntryBase(uint64_t base) { stack_.SetEntryBase(base); }

  // The snapshot at the end of a zone, to be filled before Leave(), unless SkipLeave() returns true.
  Snapshot& scratch() { return scratch_; }

  // Returns false if the innermost zone is counted. Otherwise leaves the dropped zone, or counts a mistake if none is
  // open, and returns true: no snapshot is needed.
  bool SkipLeave() {
    if (stack_.skipped() == 0 && stack_.has_counted()) [[likely]]
      return false;
    return DropLeave();
  }
  // Leaves the innermost zone, at the snapshot in scratch().
  void Leave() {
    const ZoneStack::Open& open = stack_.Pop();
    ++open.node->calls;
    AddTo(*open.node, open.begin, scratch_);
  }

  // The snapshot at which the innermost zone was entered, or the last frame ended. Requires that one is counted.
  const Snapshot& top_begin() const { return stack_.top().begin; }
  // Fills `record`, all but its number, with what was counted from `begin` to the snapshot in scratch().
  void CountSince(const Snapshot& begin, uint64_t ns_per_tick_q32, FrameRecord& record) const;

  // The zones that are open and counted, from 1, the outermost one, to open_depth().
  struct OpenZone {
    uint16_t zone = kRoot;
    uint64_t entry = 0;
    uint64_t begin_ticks = 0;  // when it was entered, or when the last frame ended
  };
  size_t open_depth() const { return stack_.counted(); }
  OpenZone OpenAt(size_t depth) const {
    const ZoneStack::Open& open = stack_[depth];
    return {open.node->index, open.entry, open.begin.ticks};
  }

  // Enters a zone that is not to be counted although zones around it are. Zones entered inside it are dropped.
  void EnterUncounted() { stack_.Skip(); }

  // Returns true inside a dropped zone.
  bool has_dropped() const { return stack_.skipped() != 0; }
  // Number of open zones, with dropped ones.
  uint32_t depth() const { return stack_.counted() + stack_.skipped(); }
  // Ends every zone that was entered after `entry`, at the snapshot in scratch(): they were not left, and count as
  // mismatched. Returns false, and does nothing, if `entry` is not open.
  bool UnwindTo(uint64_t entry);
  // Abandons a visit that was left on another thread. It is not counted; the sums of its zone are only raised to those
  // of the zones below it (Sums::at_least). So a visit with an open child stays on the stack until the child was left
  // and PopAbandoned is called. Does nothing if `entry` is not open.
  void Abandon(uint64_t entry);
  // Counts the zones that are open as mismatched, except abandoned ones: their thread ends. Not during a reading of the
  // results.
  void CountNeverLeft();
  // Removes abandoned visits from the top of the stack. Returns false if some stay, below open children.
  bool PopAbandoned();

  // Maximum number of frames that may wait for Settle.
  static constexpr size_t kMaxPending = FrameMarks::kMaxPending;

  // The snapshot of the next mark, to be filled before EndFrame or BeginFrame. Requires pending() < kMaxPending.
  Snapshot& next_mark() { return marks_.next(); }
  // Returns the ticks at which the frame under way began.
  uint64_t frame_begin_ticks() const { return marks_.current().ticks; }
  // Bit i: event i was off its counter for a part of the frame that ended last, so that its value is too low.
  uint32_t MultiplexedInLastFrame() const { return events_.MultiplexedBetween(marks_.last().begin, marks_.last().end); }
  // Starts a segment of frames at the snapshot in next_mark(). Requires pending() == 0.
  void BeginFrame() { marks_.BeginSegment(events_); }
  // Ends the frame at the snapshot in next_mark(), which is also the start of the next: splits the zones that are open,
  // adds the sums of the zones of this frame to the totals and to the histograms. Returns the frame's ticks. The frame
  // itself is left for Settle, which costs less for many at once; at most kMaxPending may wait. `ns_per_tick_q32`:
  // nanoseconds per tick, in units of 2^-32.
  uint64_t EndFrame(uint64_t number, uint64_t ns_per_tick_q32) {
    const FrameMarks::Interval frame = marks_.End();
    if (touched_ != nullptr || mistakes_.sum() != closed_mistakes_.sum()) {
      CloseZones(frame.end, number, ns_per_tick_q32);
    }
    return frame.ticks();
  }
  size_t pending() const { return marks_.pending(); }
  // Fills `record` from the oldest frame that waits, all but its number, and adds it to the frame's own histograms.
  // last(kRoot) refers to `record` from then on, so it must stay valid until the next Settle. Requires pending() != 0.
  void Settle(uint64_t ns_per_tick_q32, FrameRecord& record);

  // As BeginFrame, and as EndFrame with Settle, but at the snapshot in scratch(), and with the tree's own record.
  // Require pending() == 0. The result of EndFrameAtScratch is valid until the next frame ends.
  void BeginFrameAtScratch();
  const FrameRecord& EndFrameAtScratch(uint64_t number, uint64_t ns_per_tick_q32);
  // Forgets the frame that is under way and everything open in it.
  void DropFrame();

  // The results of EndFrame and Settle. Another thread may read them while the owner enters and leaves zones, but not
  // during BeginFrame, EndFrame, Settle and the AtScratch functions. Nodes are in the order in which they were first
  // seen, parents before their children.
  size_t size() const { return closed_count_; }
  const char* name(size_t node) const { return nodes_.detail(node).name; }
  std::shared_ptr<const NameArena> names() const { return names_; }  // keeps all names alive
  uint16_t parent(size_t node) const { return nodes_[node].parent->index; }
  Sums total(size_t node) const { return node == kRoot ? marks_.Total(events_) : nodes_.Total(node); }
  uint64_t frames(size_t node) const { return node == kRoot ? marks_.frames() : nodes_.detail(node).frames; }
  FrameRecord last(size_t node) const { return node == kRoot ? root_last() : nodes_.Last(node); }
  // Per-frame values: index 0 is the wall in ns, 1 + i is event i.
  const ZoneHistogram& histogram(size_t node, size_t which) const { return nodes_.histogram(node, which); }
  // Number of values that are in no quantile.
  uint64_t unplaced() const { return parts_.unplaced(); }
  const ZoneShape& shape() const { return shape_; }

  uint64_t dropped() const { return closed_mistakes_.dropped; }
  uint64_t mismatched() const { return closed_mistakes_.mismatched; }

 private:
  // Zones that were dropped, or not left where they had to be.
  struct Mistakes {
    uint64_t dropped = 0, mismatched = 0;

    uint64_t sum() const { return dropped + mismatched; }
  };

  const FrameRecord& root_last() const { return root_last_ != nullptr ? *root_last_ : own_last_; }
  // Adds an interval to the sums of the frame under way.
  void AddTo(ZoneNode& node, const Snapshot& begin, const Snapshot& end) {
    node.ticks += end.ticks - begin.ticks;
    events_.AddValues(node.values(), begin, end);
    if (events_.HasRest(begin, end)) [[unlikely]]
      events_.AddRest(node.missing, nodes_.times(node), begin, end);
  }
  Snapshot* EnterOther(ZoneId id);
  ZoneNode* FindChild(ZoneNode& parent, ZoneId id);
  ZoneNode* FindByText(const ZoneNode& parent, const char* text) const;
  ZoneNode* AddChild(ZoneNode& parent, const char* text);
  void Touch(ZoneNode& node);
  Snapshot* Skip();
  bool DropLeave();
  void RaiseToChildren(ZoneNode& node);
  void AddRoot(const FrameMarks::Interval& frame, uint64_t ns_per_tick_q32, FrameRecord& record);
  void AddRootScaled(const FrameMarks::Interval& frame, FrameRecord& record);
  void CloseZones(const Snapshot& at, uint64_t number, uint64_t ns_per_tick_q32);
  void SplitOpen(const Snapshot& at);
  void CloseFrame(ZoneNode& node, uint64_t number, uint64_t ns_per_tick_q32);
  void AddTimes(ZoneNode& node, size_t i, uint64_t value, uint32_t& missing);
  void AddToHistogram(ZoneNode& node, size_t which, uint64_t value) {
    nodes_.histograms(node)[which].Add(value, {parts_, memory_});
  }

  ZoneShape shape_;
  CountedEvents events_;
  ZoneNodes nodes_;
  ZoneMemory memory_;
  ZoneNode* root_;
  ZoneIndex index_;
  ZoneStack stack_;
  ZoneNode* touched_ = nullptr;  // the zones of the frame under way, by ZoneDetail::next_touched
  Snapshot scratch_{};
  FrameMarks marks_;
  const FrameRecord* root_last_ = nullptr;  // The last frame that Settle has added; nullptr means own_last_.
  FrameRecord own_last_;                    // The last frame that EndFrameAtScratch has ended.
  std::shared_ptr<NameArena> names_;
  HistogramParts parts_;
  Mistakes mistakes_;
  // As of the last EndFrame.
  size_t closed_count_ = 1;
  Mistakes closed_mistakes_;
};

}  // namespace perfkit::count
