// The functions of one unit by address, and the calls that were inlined into each.
//
//   FunctionIndex   pc ─> function                            built once for each unit, in one pass over its entries
//   InlineTree      pc ─> inlined call ─> its caller ─> …     built at the first lookup in the function
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "src/base/flatten.h"
#include "src/symbolize/dwarf/unit.h"

namespace perfkit::symbolize::dwarf {

// A function's name, which is read at its first use.
struct CallName {
  std::string_view text;
  bool linkage = false, known = false;  // The name is the linkage name; the name was read.
};

class InlineTree {
 public:
  static constexpr uint32_t kNone = ~0u;
  struct Node {
    uint64_t entry = 0;                       // Offset in .debug_info.
    uint32_t parent = kNone;                  // The call that it was inlined into; kNone means the function.
    uint32_t file = 0, line = 0, column = 0;  // Where it is called; `file` is a number in the unit's line table.
    CallName name;
  };

  // Reads the calls inlined into the function at offset `entry`.
  InlineTree(const Unit& unit, uint64_t entry);

  // Returns the innermost call at `address`, or kNone.
  uint32_t Find(uint64_t address) const { return ranges_.Find(address); }
  Node& node(uint32_t index) { return nodes_[index]; }
  size_t bytes() const { return sizeof(*this) + ranges_.bytes() + nodes_.capacity() * sizeof(Node); }

 private:
  // Adds one call and its ranges.
  void Add(const Unit& unit, const Entry& entry, uint32_t parent, struct RangeBudget& budget);

  base::FlatRanges ranges_;
  std::vector<Node> nodes_;
};

class FunctionIndex {
 public:
  static constexpr uint32_t kNone = ~0u;
  struct Function {
    uint64_t entry = 0;
    CallName name;
    std::unique_ptr<InlineTree> inlined;  // Null until the first lookup in the function.
  };

  explicit FunctionIndex(const Unit& unit);

  // Returns the function that contains `address`, or kNone.
  uint32_t Find(uint64_t address) const { return ranges_.Find(address); }
  Function& function(uint32_t index) { return functions_[index]; }
  void Prefetch(uint32_t index) const {
    __builtin_prefetch(&functions_[index]);
    __builtin_prefetch(functions_[index].inlined.get());
  }
  size_t size() const { return functions_.size(); }
  size_t bytes() const { return ranges_.bytes() + functions_.capacity() * sizeof(Function); }

 private:
  base::FlatRanges ranges_;
  std::vector<Function> functions_;
};

}  // namespace perfkit::symbolize::dwarf
