// A clock and counters that a test moves, and the law that the sums of every zone tree obey.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <random>
#include <string>

#include "src/count/frame/zone_tree.h"

namespace perfkit::count {

inline constexpr size_t kEvents = 5;
inline constexpr uint64_t kOneNsATick = uint64_t{1} << 32;

class MadeUpReader {
 public:
  explicit MadeUpReader(uint64_t seed) : random_(seed) { now_.values.fill(0); }
  void Work() {
    now_.ticks += random_() % 1000;
    for (size_t i = 0; i < kEvents; ++i) now_.values[i] += random_() % (10 << i);
  }
  void Read(Snapshot& out) const { out = now_; }
  const Snapshot& now() const { return now_; }

 private:
  std::mt19937_64 random_;
  Snapshot now_{};
};

inline std::string PathOf(const ZoneTree& tree, size_t node) {
  if (node == ZoneTree::kRoot) return "";
  return PathOf(tree, tree.parent(node)) + "/" + tree.name(node);
}

// Children have no more than their parent: self is a number, not a wrapped one.
inline void CheckLaw(const ZoneTree& tree) {
  for (size_t node = 0; node < tree.size(); ++node) {
    Sums children;
    for (size_t child = 1; child < tree.size(); ++child) {
      if (tree.parent(child) == node) children.Merge(tree.total(child));
    }
    REQUIRE(children.ticks <= tree.total(node).ticks);
    for (size_t i = 0; i < kEvents; ++i) REQUIRE(children.values[i] <= tree.total(node).values[i]);
  }
}

// One step of a tree, with snapshots of the reader.
inline const FrameRecord& EndFrame(ZoneTree& tree, const Snapshot& at, uint64_t number) {
  tree.scratch() = at;
  return tree.EndFrameAtScratch(number, kOneNsATick);
}

inline void BeginFrame(ZoneTree& tree, const Snapshot& at) {
  tree.next_mark() = at;
  tree.BeginFrame();
}

inline void Leave(ZoneTree& tree, const MadeUpReader& reader) {
  if (tree.SkipLeave()) return;
  reader.Read(tree.scratch());
  tree.Leave();
}

inline void Enter(ZoneTree& tree, const MadeUpReader& reader, const char* name) {
  if (Snapshot* begin = tree.Enter({name})) reader.Read(*begin);
}

}  // namespace perfkit::count
