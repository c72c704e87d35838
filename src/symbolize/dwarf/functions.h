// The functions of one unit by address, and the calls that were inlined into each.
//
//   pc ─> function                            found in one pass over the unit's entries
//   pc ─> inlined call ─> its caller ─> …     read at the first lookup in the function
//
// If no cache of the CPU has what a lookup reads, each load waits for the one before it. So the inlined calls of all
// functions are in two arrays of the unit, and a function says where its own are.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "src/base/flatten.h"
#include "src/base/last_at.h"
#include "src/symbolize/dwarf/unit.h"

namespace perfkit::symbolize::dwarf {

// A function's name, which is read at its first use.
struct CallName {
  std::string_view text;
  bool linkage = false, known = false;  // The name is the linkage name; the name was read.
};

// Not thread-safe.
class FunctionIndex {
 public:
  static constexpr uint32_t kNone = ~0u;
  struct InlinedCall {
    uint64_t entry = 0;                       // Offset in .debug_info.
    uint32_t parent = kNone;                  // The call that it was inlined into; kNone means the function.
    uint32_t file = 0, line = 0, column = 0;  // Where it is called; `file` is a number in the unit's line table.
    CallName name;
  };
  struct Function {
    uint64_t entry = 0;
    CallName name;
    bool inlined_known = false;  // ReadInlined was called.
    // The inlined calls from first_call on are its own, and the ranges [first_range, first_range + ranges).
    uint32_t first_call = 0, first_range = 0, ranges = 0;
  };

  explicit FunctionIndex(const Unit& unit);

  // Returns the function that contains `address`, or kNone.
  uint32_t Find(uint64_t address) const { return ranges_.Find(address); }
  Function& function(uint32_t index) { return functions_[index]; }

  // Reads the calls inlined into a function. Call it once, before FindInlined. `unit` is that of the constructor.
  void ReadInlined(const Unit& unit, Function& function);
  // Returns the innermost call at `address`, or kNone. Begins to load it.
  uint32_t FindInlined(const Function& function, uint64_t address) const {
    __builtin_prefetch(calls_.data() + function.first_call);
    const base::FlatRanges::Range* const found =
        base::LastAt(inlined_ranges_.data() + function.first_range, function.ranges, address,
                     [](const base::FlatRanges::Range& range) { return range.begin; });
    if (found == nullptr || address >= found->end) return kNone;
    __builtin_prefetch(&calls_[found->id]);
    return found->id;
  }
  InlinedCall& call(uint32_t index) { return calls_[index]; }

  size_t size() const { return functions_.size(); }
  size_t bytes() const {
    return ranges_.bytes() + functions_.capacity() * sizeof(Function) + calls_.capacity() * sizeof(InlinedCall) +
           inlined_ranges_.capacity() * sizeof(base::FlatRanges::Range);
  }

 private:
  base::FlatRanges ranges_;
  std::vector<Function> functions_;
  std::vector<InlinedCall> calls_;
  std::vector<base::FlatRanges::Range> inlined_ranges_;  // Their ids are indices in calls_.
};

}  // namespace perfkit::symbolize::dwarf
