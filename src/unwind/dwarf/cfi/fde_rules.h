// The rules of one section of call frame information. Those of a function are computed at its first lookup and kept.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "src/unwind/dwarf/cfi/cfi_records.h"
#include "src/unwind/dwarf/cfi/fde_index.h"
#include "src/unwind/dwarf/cfi/usual_program.h"

namespace perfkit::unwind {

// All changes of rule in one section, in ascending order.
struct SectionChanges {
  std::vector<RuleChange> changes;
  std::vector<size_t> padding;  // Indices of the changes at the ends of functions, where padding begins; ascending.
};

// Not thread-safe.
class FdeRules {
 public:
  // Functions are padded to 16 bytes. The padding after a function has its last rule, unless another function covers
  // it. No standard says so, but libdw and others do the same.
  static constexpr uint64_t kPadding = 15;

  // Which code a lookup finds: that of functions only, or also the padding after them.
  enum class Reach : uint8_t { kExact, kPadded };

  FdeRules(base::Bytes ident, const CfiSection& section, const MachineRegisters& machine);

  // Returns the rule at `address`; kNone if no function covers it.
  Rule At(uint64_t address, Reach reach);
  // Writes the whole row at `address` to `row`. Returns false if there is none.
  bool Full(uint64_t address, Reach reach, CfiRow& row);
  // Returns the address of the rule kInstalls in the function that contains `address`, or nullopt.
  std::optional<uint64_t> LandingJumpIn(uint64_t address);
  // Returns the first address of the function that contains `address`, or nullopt.
  std::optional<uint64_t> FunctionAt(uint64_t address, Reach reach);

  // Returns the changes of all functions. After a function there is padding, which has its last rule, and then code
  // without information (kNone), as far as the next function is not there. Where RuleFromRow returns kSlow, the rule is
  // slow(row, that rule).
  SectionChanges Changes(absl::FunctionRef<Rule(const CfiRow& row, const Rule& rule)> slow);
  // As above, with rules that `as` makes from all rows.
  SectionChanges ChangesAs(absl::FunctionRef<Rule(const CfiRow& row)> as);

  size_t heap_bytes() const;

 private:
  // A function whose FDE was read. Its rows are the elements [first, first + rows) of starts_ and rules_.
  struct Function {
    uint64_t begin;
    uint64_t end;  // Equal to begin if the FDE is damaged or empty.
    uint32_t slot;
    uint32_t first;
    uint32_t rows;
  };

  // `append(fde, changes)` appends the changes of a function.
  template <class Append>
  SectionChanges ChangesBy(const Append& append);
  // Returns the function that contains `address`, or nullptr. Valid until the next call.
  const Function* Find(uint64_t address, Reach reach);
  // Returns the function of a slot, reading it if necessary.
  const Function& FunctionIn(size_t slot);
  const Function& Decode(size_t slot);
  // Returns the slot's bucket, or the empty one for it.
  uint32_t& Bucket(uint32_t slot);
  // Drops all functions and their rules.
  void Forget();
  // Doubles the number of buckets.
  void Grow();
  Rule RuleIn(const Function& function, uint64_t address) const;

  MachineRegisters machine_;
  CfiRecords records_;
  FdeIndex index_;
  std::vector<uint32_t> starts_;  // Offsets from the function's begin.
  std::vector<Rule> rules_;
  std::vector<Function> functions_;
  std::vector<uint32_t> buckets_;    // A hash table by slot: 1 + index in functions_; 0 means empty.
  std::vector<RuleChange> changes_;  // Of the function that Decode reads. Kept so that its memory is reused.
};

}  // namespace perfkit::unwind
