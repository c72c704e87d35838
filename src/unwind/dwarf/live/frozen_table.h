// The rules of a whole module in one flat table, for searching in signal handlers.
//
// A row takes about one and a half bytes. Rows are grouped in lines of the size of a cache line. An index by address
// and a short binary search find the line. Within a line, a frequent change ("after 2 bytes, sp is 8 further": a push)
// is one code; other changes are a code with operands. The frequent changes are chosen for each module. So a lookup
// reads few cache lines of a small table: 24 to 44 KiB for each MiB of code, where pairs of address and rule take 100
// to 170 KiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "src/unwind/dwarf/cfi/cfi.h"
#include "src/unwind/rule.h"

namespace perfkit::unwind {

// Immutable, so any thread and any signal handler may search it.
class FrozenTable {
 public:
  FrozenTable() = default;  // Has kNone at all addresses.

  // Copies the rules of `cfi`. Code beyond 4 GiB from the first row is left out. If more than 65,535 different rules
  // need a number, the further ones are kSlow with offset 0.
  explicit FrozenTable(Cfi& cfi)
      : FrozenTable(
            cfi, [](const CfiRow&, const Rule& rule) { return rule; }, [](uint64_t) {}) {}
  // As above, with slow(row, rule) in place of each rule that is kSlow. Calls on_landing_jump(address) for each row
  // whose rule is kInstalls.
  FrozenTable(Cfi& cfi, Cfi::SlowRule slow, absl::FunctionRef<void(uint64_t address)> on_landing_jump);

  // Returns the rule that was copied for `address`. Async-signal-safe: does not allocate or lock. Takes a binary search
  // without unpredictable branches, among four lines on average, and at most 62 steps.
  Rule At(uint64_t address) const;

  size_t rows() const { return rows_; }
  size_t heap_bytes() const;

 private:
  friend class FrozenBuilder;

  // The change of rule that a code stands for, `delta` bytes after the row before.
  struct Step {
    uint16_t delta;
    uint16_t what;  // Relative steps: the signed change of the rule's offset. Other steps: the number of the new rule.
  };
  // Codes: relative steps first, then other steps. Codes from kEscapes on have operands: a delta of 1, 2 or 4 bytes,
  // and the number of a rule in 1 or 2 bytes.
  static constexpr unsigned kEscapes = 240, kEnd = 255;
  static constexpr size_t kLineCodes = 62;
  struct alignas(64) Line {
    uint16_t rule;  // The number of the first row's rule.
    uint8_t codes[kLineCodes];
  };
  static_assert(sizeof(Line) == 64);

  // Makes index_ for starts_.
  void MakeIndex();
  // `wanted` is an offset from the line's first row.
  Rule RuleIn(const Line& line, uint64_t wanted) const;

  uint64_t base_ = 0;  // The address of the first row.
  size_t rows_ = 0;
  unsigned relative_ = 0;         // Codes below this one are relative steps.
  std::vector<uint32_t> starts_;  // By line: the offset of its first row from base_, ascending.
  // By offset >> shift_: the last line that begins at or before the first of these offsets. One element for each number
  // up to that of the last line. A binary search among all lines would read some ten lines of the cache, one after the
  // other.
  std::vector<uint32_t> index_;
  unsigned shift_ = 0;
  std::vector<Line> lines_;
  std::vector<Step> steps_;  // By code.
  std::vector<Rule> rules_;  // By number; the most frequent ones first.
};

}  // namespace perfkit::unwind
