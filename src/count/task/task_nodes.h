// The names of tasks and the zones below them, as nodes of one tree that all threads share.
//
// Nodes are only added, under a lock; a node that is known is found without one. Node 0 is everything outside of tasks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace perfkit::count {

// Thread-safe. In a forked child, Define must not be called: another thread of the parent may hold its lock.
class TaskNodes {
 public:
  static constexpr uint16_t kOutside = 0;

  explicit TaskNodes(size_t max_nodes);

  // Returns the node `name` below `parent`, or kOutside if this address of the name is not known there.
  uint16_t Find(uint16_t parent, const char* name) const noexcept;
  // As Find, but adds the node, or this address of its name. Returns kOutside if there are too many. Allocates.
  uint16_t Define(uint16_t parent, const char* name);

  // Requires that the node was returned by Find or Define, directly or as a parent.
  uint16_t parent(uint16_t node) const { return parents_[node]; }
  const std::string& name(uint16_t node) const { return names_[node]; }
  // Number of nodes, including kOutside. A parent has a lower number than its children.
  size_t size() const { return size_.load(std::memory_order_acquire); }  // Pairs with the release in Define.

 private:
  // An entry of a table with open addressing. Written once; `node` is written last.
  struct Entry {
    const char* name = nullptr;
    uint16_t parent = 0;
    std::atomic<uint16_t> node{0};
  };

  void AddAddress(uint16_t parent, const char* name, uint16_t node);

  std::vector<Entry> entries_;
  unsigned shift_;                  // NameShift(entries_.size())
  std::vector<uint16_t> parents_;   // Not resized.
  std::vector<std::string> names_;  // Not resized.
  std::atomic<size_t> size_{1};
  size_t used_ = 0;  // Number of `entries_` that are used.
  std::mutex mutex_;
};

}  // namespace perfkit::count
