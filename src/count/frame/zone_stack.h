// The zones of one thread that are open now.
//
// Nothing is counted inside a dropped zone, so all open dropped zones are above the counted ones, and it is enough to
// know their number. An abandoned visit was left on another thread: it stays while zones above it are open.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "perfkit/count.h"
#include "src/count/frame/zone_memory.h"
#include "src/count/frame/zone_nodes.h"

namespace perfkit::count {

// Not thread-safe.
class ZoneStack {
 public:
  static constexpr uint32_t kFirstDepth = 8;

  // A counted zone that is open.
  struct Open {
    ZoneNode* node = nullptr;
    bool abandoned = false;
    uint64_t entry = 0;  // Id of this visit.
    Snapshot begin{};    // When it was entered, or when the last frame ended.
  };

  // Number of bytes of memory that the constructor takes at most.
  static constexpr size_t kFirstBytes = (kFirstDepth + 1) * sizeof(Open) + alignof(Open);

  // `memory` must have kFirstBytes. `root` stands for the frame.
  ZoneStack(size_t max_depth, ZoneNode* root, ZoneMemory& memory) : max_depth_(static_cast<uint32_t>(max_depth)) {
    Resize(std::min(max_depth_, kFirstDepth), memory);
    frame_->node = root;
  }

  // Makes the ids of visits differ from those of other stacks.
  void SetEntryBase(uint64_t base) { last_entry_ = base; }

  // Returns false inside a dropped zone, or if there is no room for one more.
  bool has_room() const { return skipped_ == 0 && top_ != last_; }
  // Makes room. Returns false inside a dropped zone, at the maximum depth, or if no memory is left. What was returned
  // before is no longer valid.
  bool MakeRoom(ZoneMemory& memory) {
    if (skipped_ != 0 || counted() == max_depth_) return false;
    return Resize(std::min(max_depth_, 2 * room()), memory);
  }
  // Requires room.
  Open& Push(ZoneNode& node) {
    Open& open = *++top_;
    open.node = &node;
    open.entry = ++last_entry_;
    return open;
  }
  // Requires that a counted zone is on top. The result is valid until the next Push.
  const Open& Pop() { return *top_--; }
  // Enter and leave a zone that is not counted. Unskip requires that one is open.
  void Skip() { ++skipped_; }
  void Unskip() { --skipped_; }
  // Leaves all of them, and returns their number.
  uint32_t TakeSkipped() { return std::exchange(skipped_, 0); }

  // Number of counted zones that are open: elements 1 to counted(), from the outermost one. Element 0 stands for the
  // frame.
  uint32_t counted() const { return static_cast<uint32_t>(top_ - frame_); }
  bool has_counted() const { return top_ != frame_; }
  uint32_t skipped() const { return skipped_; }
  Open& operator[](size_t depth) { return frame_[depth]; }
  const Open& operator[](size_t depth) const { return frame_[depth]; }
  const Open& top() const { return *top_; }
  // Returns the id of the innermost visit; 0 for a dropped zone, or if none is open.
  uint64_t top_entry() const { return skipped_ == 0 ? top_->entry : 0; }
  // Returns the index of the visit with this id; 0 if it is not open.
  uint32_t DepthOf(uint64_t entry) const {
    if (entry == 0) return 0;
    uint32_t depth = counted();
    while (depth != 0 && frame_[depth].entry != entry) --depth;
    return depth;
  }

  // Marks element `depth` as abandoned.
  void Abandon(uint32_t depth) {
    abandoned_ += frame_[depth].abandoned ? 0 : 1;
    frame_[depth].abandoned = true;
  }
  bool is_top_abandoned() const { return skipped_ == 0 && top_->abandoned; }
  // Requires is_top_abandoned().
  void PopAbandoned() {
    top_->abandoned = false;
    --top_;
    --abandoned_;
  }
  bool has_abandoned() const { return abandoned_ != 0; }

  void Clear() {
    for (; top_ != frame_; --top_) top_->abandoned = false;
    skipped_ = abandoned_ = 0;
  }

 private:
  // Number of zones for which it has memory.
  uint32_t room() const { return static_cast<uint32_t>(last_ - frame_); }
  bool Resize(uint32_t room, ZoneMemory& memory) {
    auto* const larger = reinterpret_cast<Open*>(memory.Take((room + size_t{1}) * sizeof(Open), alignof(Open)));
    if (larger == nullptr) return false;
    std::uninitialized_default_construct_n(larger, room + size_t{1});
    const size_t open = counted();
    if (frame_ != nullptr) std::copy_n(frame_, open + 1, larger);
    frame_ = larger;
    top_ = larger + open;
    last_ = larger + room;
    return true;
  }

  // Element 0, the innermost zone, and the last element for which there is memory.
  Open *frame_ = nullptr, *top_ = nullptr, *last_ = nullptr;
  uint32_t max_depth_;
  uint32_t skipped_ = 0;    // Dropped zones that are open.
  uint32_t abandoned_ = 0;  // Elements that are abandoned.
  uint64_t last_entry_ = 0;
};

}  // namespace perfkit::count
