// Adds nodes, and finds them by the address of their names.
#include "src/count/task/task_nodes.h"

#include <algorithm>
#include <bit>
#include <string_view>

#include "src/count/name_slot.h"

namespace perfkit::count {

// Twice as many addresses as nodes fill half of the table.
TaskNodes::TaskNodes(size_t max_nodes)
    : entries_(std::bit_ceil(4 * std::clamp<size_t>(max_nodes + 1, 2, UINT16_MAX))),
      shift_(NameShift(entries_.size())),
      parents_(std::clamp<size_t>(max_nodes + 1, 2, UINT16_MAX)),
      names_(parents_.size()) {}

uint16_t TaskNodes::Find(uint16_t parent, const char* name) const noexcept {
  for (size_t at = NameSlot(parent, name, shift_);; at = (at + 1) & (entries_.size() - 1)) {
    const Entry& entry = entries_[at];
    // Acquire: pairs with the release in AddAddress, so that the other members are seen.
    const uint16_t node = entry.node.load(std::memory_order_acquire);
    if (node == 0 || (entry.name == name && entry.parent == parent)) return node;
  }
}

uint16_t TaskNodes::Define(uint16_t parent, const char* name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const uint16_t known = Find(parent, name); known != 0) return known;
  const size_t size = size_.load(std::memory_order_relaxed);
  for (size_t node = 1; node < size; ++node) {
    if (parents_[node] != parent || names_[node] != std::string_view(name)) continue;
    AddAddress(parent, name, static_cast<uint16_t>(node));
    return static_cast<uint16_t>(node);
  }
  if (size == parents_.size()) return kOutside;
  parents_[size] = parent;
  names_[size] = name;
  size_.store(size + 1, std::memory_order_release);  // Pairs with the acquire in size().
  AddAddress(parent, name, static_cast<uint16_t>(size));
  return static_cast<uint16_t>(size);
}

// If equal names at very many addresses fill half of the table, further addresses are not added: Define compares the
// names as texts each time.
void TaskNodes::AddAddress(uint16_t parent, const char* name, uint16_t node) {
  if (2 * used_ >= entries_.size()) return;
  ++used_;
  size_t at = NameSlot(parent, name, shift_);
  while (entries_[at].node.load(std::memory_order_relaxed) != 0) at = (at + 1) & (entries_.size() - 1);
  entries_[at].name = name;
  entries_[at].parent = parent;
  entries_[at].node.store(node, std::memory_order_release);  // Pairs with the acquire in Find.
}

}  // namespace perfkit::count
