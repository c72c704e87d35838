// The stack table with one entry for each call, so that inlined calls are entries of their own.
//
//   stacks   main <- Hot{Inlined, Hot}         a location may have several calls
//   frames   main <- Hot <- Inlined            a frame has one
//
// A frame's parent always has a smaller index, so that sums over subtrees are one loop from the last frame to the
// first.
#pragma once

#include <cstdint>
#include <vector>

#include "perfkit/profile.h"

namespace perfkit::profile {

inline constexpr uint32_t kNone = UINT32_MAX;

// The sum of a weight and its samples, for events side by side: sums[row * events + event].
using Sums = std::vector<Profile::Sum>;

inline void Add(Profile::Sum& to, const Profile::Sum& sum) {
  to.weight += sum.weight;
  to.samples += sum.samples;
}

// Requires Profile::Check(). The profile must outlive it.
class FrameTree {
 public:
  struct Node {
    uint32_t parent = kNone;  // kNone: no caller is known
    uint32_t location = 0;    // in Profile::locations
    uint32_t call = kNone;    // in Profile::calls; kNone: the location has no names
  };

  explicit FrameTree(const Profile& profile);

  const std::vector<Node>& frames() const { return frames_; }
  // The innermost frame of a stack; kNone for ProfileStack::kRoot.
  uint32_t Leaf(uint32_t stack) const { return stack == ProfileStack::kRoot ? kNone : leaves_[stack]; }

  // For each frame and event, the sums of the samples that end in it.
  Sums SelfSums() const;
  // Adds each frame's sums to its parent's.
  void AddToParents(Sums& sums) const;

  // Visits all frames depth first: enter(frame) before the frames that it called, leave(frame) after them. Depth is
  // bounded by memory only: nothing here calls itself.
  template <class Enter, class Leave>
  void Walk(Enter&& enter, Leave&& leave) const {
    std::vector<uint32_t> path;
    uint32_t at = first_root_;
    while (at != kNone || !path.empty()) {
      if (at != kNone) {
        enter(at);
        path.push_back(at);
        at = first_child_[at];
      } else {
        leave(path.back());
        at = next_sibling_[path.back()];
        path.pop_back();
      }
    }
  }

 private:
  void AddFrame(uint32_t& parent, uint32_t location, uint32_t call);
  void Link();

  const Profile& profile_;
  std::vector<Node> frames_;
  std::vector<uint32_t> leaves_;  // by stack
  std::vector<uint32_t> first_child_, next_sibling_;
  uint32_t first_root_ = kNone;
};

// The sums of one thread's samples with one stack, for one event.
struct StackSum {
  uint32_t thread = 0, leaf = kNone;
  size_t event = 0;
  Profile::Sum sum{};
};

// Sums of samples with the same thread (unless not `by_thread`), innermost frame and event, in the order of threads and
// frames: in that order, stacks that share frames come one after another.
std::vector<StackSum> StackSums(const Profile& profile, const FrameTree& tree, bool by_thread);

}  // namespace perfkit::profile
