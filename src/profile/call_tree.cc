// Call trees: stacks merged by function.
//
// Samples are summed by thread and stack first. Frames that are one node of the tree of all threads get one number, by
// hashing. Then each distinct stack of a thread is entered once: its frames are mapped to nodes by their numbers, from
// the outermost to the innermost, and a frame that was mapped before ends the work, so that all stacks of a thread
// together cost no more than the frames that they have, and no further hashing. A bottom-up tree is made of the
// top-down one, by entering the path of each node with samples of its own in the other direction. Last, nodes are
// renumbered breadth first, so that the children of a node lie side by side in the order of their weight.
#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "perfkit/report.h"
#include "src/profile/frame_tree.h"
#include "src/profile/function_index.h"
#include "src/profile/pair_index.h"

namespace perfkit {

std::string FunctionName(const Profile& profile, const ReportFunction& function) {
  return function.name != 0 ? profile.strings[function.name] : profile.UnnamedCode(function.location);
}

namespace {

using profile::FrameTree;
using profile::FunctionIndex;
using profile::kNone;
using profile::PairIndex;
using profile::StackSum;
using profile::Sums;
using Node = CallTree::Node;

// A tree that grows. Nodes are in the order in which they were found, so each comes after its parent. Node 0 is the
// root and no function.
class Growing {
 public:
  explicit Growing(size_t events) : events_(events), self_(events) {}

  // A new child of `parent`. The depth counts functions: the node of a thread adds nothing to it.
  uint32_t Add(uint32_t parent, uint32_t function, uint32_t thread, bool inlined) {
    nodes_.push_back({.parent = parent, .function = function, .thread = thread, .inlined = inlined});
    depth_.push_back(depth_[parent] + (function == CallTree::kNoFunction ? 0 : 1));
    self_.resize(self_.size() + events_);
    return static_cast<uint32_t>(nodes_.size() - 1);
  }

  // The child of `parent` for this function and thread, found by hashing.
  uint32_t Child(uint32_t parent, uint32_t function, uint32_t thread, bool inlined) {
    // In the key of a thread's node the lower half is kNone, which no function's number is.
    const uint64_t what = function == CallTree::kNoFunction ? uint64_t{thread} << 32 | kNone : function;
    const auto [entry, is_new] = index_.try_emplace({parent, what}, nodes_.size());
    if (is_new) return Add(parent, function, thread, inlined);
    AlsoSeen(entry->second, inlined);
    return entry->second;
  }

  // A node is inlined if all of its calls are.
  void AlsoSeen(uint32_t node, bool inlined) { nodes_[node].inlined = nodes_[node].inlined && inlined; }

  void AddSelf(uint32_t node, size_t event, const Profile::Sum& sum) {
    profile::Add(self_[node * events_ + event], sum);
  }

  size_t events() const { return events_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  uint32_t depth(uint32_t node) const { return depth_[node]; }
  const Sums& self() const { return self_; }
  bool HasSelf(uint32_t node) const {
    return std::any_of(self_.begin() + static_cast<ptrdiff_t>(node * events_),
                       self_.begin() + static_cast<ptrdiff_t>((node + 1) * events_),
                       [](const Profile::Sum& sum) { return sum.weight != 0 || sum.samples != 0; });
  }

 private:
  size_t events_;
  std::vector<Node> nodes_{Node{}};
  std::vector<uint32_t> depth_{0};
  Sums self_;
  PairIndex index_;
};

// For each frame the number of its path of functions: frames of one path are one node of a thread's tree. Several
// frames have the same path if a function was sampled at several of its instructions. Frames beyond `max_depth` (0:
// none are) have their parent's.
std::vector<uint32_t> PathsOf(const FrameTree& tree, const std::vector<uint32_t>& functions, uint32_t max_depth) {
  PairIndex index;
  std::vector<uint32_t> paths, depths;
  paths.reserve(tree.frames().size());
  for (size_t i = 0; i < tree.frames().size(); ++i) {
    const uint32_t parent = tree.frames()[i].parent;
    const uint32_t outer = parent == kNone ? kNone : paths[parent];
    const uint32_t depth = outer == kNone ? 0 : depths[outer];
    if (max_depth != 0 && depth == max_depth) {
      paths.push_back(outer);
      continue;
    }
    const auto [entry, is_new] = index.try_emplace({outer, functions[i]}, depths.size());
    if (is_new) depths.push_back(depth + 1);
    paths.push_back(entry->second);
  }
  return paths;
}

// Enters stacks, and remembers which nodes their frames became.
class StackEntry {
 public:
  StackEntry(const Profile& profile, const FrameTree& tree, const std::vector<uint32_t>& functions, uint32_t max_depth)
      : profile_(profile),
        tree_(tree),
        functions_(functions),
        paths_(PathsOf(tree, functions, max_depth)),
        max_depth_(max_depth),
        node_of_(tree.frames().size(), kNone),
        node_of_path_(tree.frames().size(), kNone) {}

  // Forgets all frames: what follows is below `root`.
  void SetRoot(uint32_t root, uint32_t thread) {
    for (const uint32_t frame : entered_) node_of_[frame] = node_of_path_[paths_[frame]] = kNone;
    entered_.clear();
    root_ = root;
    thread_ = thread;
  }

  // Returns the node of the stack that ends in frame `leaf`. Goes outwards to the nearest frame that has a node
  // already, then enters the frames inside of it.
  uint32_t Enter(Growing& to, uint32_t leaf) {
    path_.clear();
    uint32_t at = leaf;
    for (; at != kNone && node_of_[at] == kNone; at = tree_.frames()[at].parent) path_.push_back(at);
    uint32_t node = at == kNone ? root_ : node_of_[at];
    for (size_t i = path_.size(); i-- > 0;) {
      const FrameTree::Node& frame = tree_.frames()[path_[i]];
      const bool inlined = frame.call != kNone && profile_.calls[frame.call].inlined;
      // The weight of calls beyond the depth limit counts for the deepest node within it.
      const bool fits = max_depth_ == 0 || to.depth(node) < max_depth_;
      if (fits) node = Child(to, node, path_[i], inlined);
      node_of_[path_[i]] = node;
      entered_.push_back(path_[i]);
    }
    return node;
  }

 private:
  uint32_t Child(Growing& to, uint32_t parent, uint32_t frame, bool inlined) {
    uint32_t& node = node_of_path_[paths_[frame]];
    if (node == kNone) return node = to.Add(parent, functions_[frame], thread_, inlined);
    to.AlsoSeen(node, inlined);
    return node;
  }

  const Profile& profile_;
  const FrameTree& tree_;
  const std::vector<uint32_t>& functions_;
  const std::vector<uint32_t> paths_;  // by frame
  uint32_t max_depth_;
  std::vector<uint32_t> node_of_;       // by frame
  std::vector<uint32_t> node_of_path_;  // by path
  std::vector<uint32_t> entered_, path_;
  uint32_t root_ = 0, thread_ = CallTree::kNoThread;
};

Growing TopDown(const Profile& profile, FunctionIndex& functions, bool by_thread, uint32_t max_depth) {
  const FrameTree tree(profile);
  const std::vector<uint32_t> function_of = FunctionsOf(tree, functions);
  Growing grown(profile.events.size());
  StackEntry entry(profile, tree, function_of, max_depth);
  uint32_t thread = CallTree::kNoThread;
  // Sums are sorted by thread: StackEntry remembers the nodes of one thread at a time.
  for (const StackSum& sum : StackSums(profile, tree, by_thread)) {
    if (by_thread && sum.thread != thread) {
      thread = sum.thread;
      entry.SetRoot(grown.Child(0, CallTree::kNoFunction, thread, false), thread);
    }
    grown.AddSelf(entry.Enter(grown, sum.leaf), sum.event, sum.sum);
  }
  return grown;
}

Growing BottomUp(const Growing& top_down, uint32_t max_depth) {
  Growing grown(top_down.events());
  const std::vector<Node>& nodes = top_down.nodes();
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    if (!top_down.HasSelf(i)) continue;
    uint32_t to = 0;
    const uint32_t thread = nodes[i].thread;
    if (thread != CallTree::kNoThread) to = grown.Child(0, CallTree::kNoFunction, thread, false);
    for (uint32_t at = i; nodes[at].function != CallTree::kNoFunction; at = nodes[at].parent) {
      if (max_depth != 0 && grown.depth(to) == max_depth) break;
      to = grown.Child(to, nodes[at].function, thread, nodes[at].inlined);
    }
    for (size_t event = 0; event < grown.events(); ++event) {
      grown.AddSelf(to, event, top_down.self()[i * grown.events() + event]);
    }
  }
  return grown;
}

// Returns for each node the sum over its subtree. Children come after their parents: one loop from the last node on.
Sums Totals(const Growing& grown) {
  Sums totals = grown.self();
  const size_t events = grown.events();
  for (size_t i = grown.nodes().size(); i-- > 1;) {
    for (size_t event = 0; event < events; ++event) {
      profile::Add(totals[grown.nodes()[i].parent * events + event], totals[i * events + event]);
    }
  }
  return totals;
}

// The nodes in their final order, breadth first: each with its children sorted by the total of `event`.
std::vector<uint32_t> BreadthFirst(const Growing& grown, const Sums& totals, size_t event,
                                   const std::vector<uint64_t>& name_order) {
  const std::vector<Node>& nodes = grown.nodes();
  const auto weight = [&](uint32_t node) {
    return grown.events() == 0 ? 0 : totals[node * grown.events() + event].weight;
  };
  // Children by parent, by a counting sort. first[i + 1] begins as where the children of node i start, and moves to
  // where they end as they are entered; afterwards they are at first[i] .. first[i + 1].
  std::vector<uint32_t> first(nodes.size() + 2), children(nodes.size());
  for (size_t i = 1; i < nodes.size(); ++i) ++first[nodes[i].parent + 2];
  for (size_t i = 2; i < first.size(); ++i) first[i] += first[i - 1];
  for (uint32_t i = 1; i < nodes.size(); ++i) children[first[nodes[i].parent + 1]++] = i;
  std::vector<uint32_t> result{0};
  // `result` grows while it is walked: children go to its end, so that it is in breadth-first order.
  result.reserve(nodes.size());
  for (size_t i = 0; i < result.size(); ++i) {
    const auto begin = children.begin() + first[result[i]], end = children.begin() + first[result[i] + 1];
    std::sort(begin, end, [&](uint32_t a, uint32_t b) {
      return std::pair(weight(b), name_order[a]) < std::pair(weight(a), name_order[b]);
    });
    // GCC 14 takes an insert of the range for one beyond the end (-Wstringop-overflow).
    std::for_each(begin, end, [&](uint32_t child) { result.push_back(child); });
  }
  return result;
}

// For each node a number that sorts as its function's name does: trees of equal profiles are equal.
std::vector<uint64_t> NameOrder(const Profile& profile, const Growing& grown,
                                const std::vector<ReportFunction>& functions) {
  std::vector<std::pair<std::string, uint32_t>> names;
  for (uint32_t i = 0; i < functions.size(); ++i) names.emplace_back(FunctionName(profile, functions[i]), i);
  std::sort(names.begin(), names.end());
  std::vector<uint64_t> rank(functions.size());
  for (size_t i = 0; i < names.size(); ++i) rank[names[i].second] = i;
  std::vector<uint64_t> order;
  for (const Node& node : grown.nodes()) {
    order.push_back(node.function == CallTree::kNoFunction ? node.thread : rank[node.function]);
  }
  return order;
}

}  // namespace

CallTree::CallTree(const Profile& profile, const CallTreeOptions& options) : events_(profile.events.size()) {
  FunctionIndex functions(profile, options.by_name);
  Growing grown = TopDown(profile, functions, options.by_thread, options.bottom_up ? 0 : options.max_depth);
  if (options.bottom_up) grown = BottomUp(grown, options.max_depth);
  functions_ = functions.functions();
  const Sums totals = Totals(grown);
  const std::vector<uint32_t> order = BreadthFirst(grown, totals, options.event, NameOrder(profile, grown, functions_));
  nodes_.reserve(order.size());
  self_.reserve(order.size() * events_);
  total_.reserve(order.size() * events_);
  std::vector<uint32_t> index(order.size());
  for (uint32_t i = 0; i < order.size(); ++i) index[order[i]] = i;
  for (uint32_t i = 0; i < order.size(); ++i) {
    Node node = grown.nodes()[order[i]];
    node.parent = index[node.parent];
    if (i != 0) {
      Node& parent = nodes_[node.parent];
      if (parent.children++ == 0) parent.first_child = i;
    }
    nodes_.push_back(node);
    for (size_t event = 0; event < events_; ++event) {
      self_.push_back(grown.self()[order[i] * events_ + event]);
      total_.push_back(totals[order[i] * events_ + event]);
    }
  }
}

}  // namespace perfkit
