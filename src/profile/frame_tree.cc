// Expands stacks into frames, and sums samples over them.
#include "src/profile/frame_tree.h"

#include <algorithm>
#include <tuple>

#include "src/profile/pair_index.h"

namespace perfkit::profile {

FrameTree::FrameTree(const Profile& profile) : profile_(profile) {
  leaves_.reserve(profile.stacks.size());
  for (const ProfileStack& stack : profile.stacks) {
    const ProfileLocation& location = profile.locations[stack.location];
    uint32_t leaf = Leaf(stack.parent);
    if (location.calls == 0) AddFrame(leaf, stack.location, kNone);
    // The last call of a location is the function itself, the outermost.
    for (uint32_t i = location.calls; i-- > 0;) AddFrame(leaf, stack.location, location.first_call + i);
    leaves_.push_back(leaf);
  }
  Link();
}

// Adds a frame that `parent` called, and makes it the parent of the next one.
void FrameTree::AddFrame(uint32_t& parent, uint32_t location, uint32_t call) {
  frames_.push_back({.parent = parent, .location = location, .call = call});
  parent = static_cast<uint32_t>(frames_.size() - 1);
}

// From the last frame to the first: each one is put before its siblings, so that they end up in the order of indexes.
void FrameTree::Link() {
  first_child_.assign(frames_.size(), kNone);
  next_sibling_.assign(frames_.size(), kNone);
  for (uint32_t i = static_cast<uint32_t>(frames_.size()); i-- > 0;) {
    uint32_t& first = frames_[i].parent == kNone ? first_root_ : first_child_[frames_[i].parent];
    next_sibling_[i] = first;
    first = i;
  }
}

Sums FrameTree::SelfSums() const {
  const size_t events = profile_.events.size();
  Sums sums(frames_.size() * events);
  for (const ProfileSample& sample : profile_.samples) {
    const uint32_t leaf = Leaf(sample.stack);
    if (leaf != kNone) Add(sums[leaf * events + sample.event], {sample.weight, sample.samples});
  }
  return sums;
}

void FrameTree::AddToParents(Sums& sums) const {
  const size_t events = profile_.events.size();
  for (size_t i = frames_.size(); i-- > 0;) {
    if (frames_[i].parent == kNone) continue;
    for (size_t event = 0; event < events; ++event) {
      Add(sums[frames_[i].parent * events + event], sums[i * events + event]);
    }
  }
}

std::vector<StackSum> StackSums(const Profile& profile, const FrameTree& tree, bool by_thread) {
  std::vector<StackSum> sums;
  PairIndex index;
  for (const ProfileSample& sample : profile.samples) {
    const uint32_t thread = by_thread ? sample.thread : 0;
    const uint32_t leaf = tree.Leaf(sample.stack);
    // A sample without a stack has leaf kNone, and its sum too.
    const auto [entry, is_new] = index.try_emplace({uint64_t{thread} << 32 | leaf, sample.event}, sums.size());
    if (is_new) sums.push_back({.thread = thread, .leaf = leaf, .event = sample.event});
    Add(sums[entry->second].sum, {sample.weight, sample.samples});
  }
  std::sort(sums.begin(), sums.end(), [](const StackSum& a, const StackSum& b) {
    return std::tuple(a.thread, a.leaf, a.event) < std::tuple(b.thread, b.leaf, b.event);
  });
  return sums;
}

}  // namespace perfkit::profile
