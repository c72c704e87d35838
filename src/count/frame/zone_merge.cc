// Merges trees by path. A tree has parents before their children, so the merged node of a parent is known before its
// children are merged. Searching is linear: trees have some hundred zones, and are merged for reports only.
#include "src/count/frame/zone_merge.h"

namespace perfkit::count {

size_t ZoneMerge::FindOrAdd(size_t parent, const char* name) {
  for (size_t node = nodes_.empty() ? 0 : 1; node < nodes_.size(); ++node) {
    if (nodes_[node].parent == parent && nodes_[node].name == name) return node;
  }
  Node& node = nodes_.emplace_back();
  node.name = name;
  node.parent = parent;
  node.histograms.resize(1 + events_);
  return nodes_.size() - 1;
}

void ZoneMerge::Add(const ZoneTree& tree) {
  unplaced_ += tree.unplaced();
  std::vector<size_t> merged(tree.size(), 0);
  for (size_t from = 0; from < tree.size(); ++from) {
    const bool is_root = from == ZoneTree::kRoot;
    merged[from] = is_root && !nodes_.empty() ? 0 : FindOrAdd(merged[tree.parent(from)], tree.name(from));
    Node& node = nodes_[merged[from]];
    ++node.threads;
    node.frames += tree.frames(from);
    node.total.Merge(tree.total(from));
    if (node.threads == 1 || tree.last(from).number > node.last.number) node.last = tree.last(from);
    for (size_t h = 0; h < node.histograms.size(); ++h) {
      tree.histogram(from, h).AddTo(node.histograms[h], pool_);
    }
  }
}

Sums ZoneMerge::Self(size_t node) const {
  Sums self = nodes_[node].total;
  for (size_t child = 1; child < nodes_.size(); ++child) {
    if (nodes_[child].parent == node) self.Subtract(nodes_[child].total);
  }
  return self;
}

}  // namespace perfkit::count
