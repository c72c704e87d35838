// Zones of several threads as one tree: equal paths of names are one zone.
//
// For reports, and for threads that have ended, whose own trees are freed. Allocates, so it is not for hot paths.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/count/frame/zone_tree.h"

namespace perfkit::count {

class ZoneMerge {
 public:
  struct Node {
    std::string name;  // "" for the root
    size_t parent = 0;
    uint32_t threads = 0;
    uint64_t frames = 0;
    Sums total;
    FrameRecord last;
    std::vector<Histogram> histograms;  // as in ZoneTree: the wall, then events
  };

  explicit ZoneMerge(size_t events) : events_(events) {}

  // Adds all closed frames of one thread.
  void Add(const ZoneTree& tree);

  const std::vector<Node>& nodes() const { return nodes_; }  // parents before their children; the root is the first
  const RowPool& pool() const { return pool_; }
  uint64_t unplaced() const { return unplaced_ + pool_.unplaced(); }  // values in no quantile

  // Returns the node's total minus the totals of its children.
  Sums Self(size_t node) const;

 private:
  size_t FindOrAdd(size_t parent, const char* name);

  size_t events_;
  RowPool pool_;
  uint64_t unplaced_ = 0;
  std::vector<Node> nodes_;
};

}  // namespace perfkit::count
