// Call frame information (CFI) of one module: the rule or the row for each address of its code.
//
// It comes from .eh_frame and, where that has nothing, from .debug_frame, of the module or of its separate debug file.
// A function's program runs when one of its rules is first needed. The rules of all its rows are then kept, in twelve
// bytes each.
//
//   address ──.eh_frame_hdr──> FDE ──AppendUsualRules──────────> Rule      nearly always
//                               └────CfiProgram──> rows ──> Rule
//                                                     └───> CfiRow    if the rule is kSlow
//
// Addresses are the module's own, before relocation. For a return address, look up the byte before it. Files may be
// hostile: each loop is bounded, and damaged records give no information.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "src/elf/image.h"
#include "src/unwind/dwarf/cfi/cfi_row.h"
#include "src/unwind/rule.h"

namespace perfkit::unwind {

// Not thread-safe: lookups fill caches.
class Cfi {
 public:
  // Reads headers only. A module without such information, or for another machine than x86-64 and aarch64, has kNone at
  // all addresses. The images' bytes must outlive this.
  explicit Cfi(const elf::Image& module, std::optional<elf::Image> debug_file = std::nullopt);
  ~Cfi();
  Cfi(Cfi&&) noexcept;
  Cfi& operator=(Cfi&&) noexcept;

  // Returns the rule at `address`; kNone if there is no information. Allocates only at the first lookup in a function.
  // The caches are bounded by 12 times the section's size.
  Rule At(uint64_t address);
  // As above. Sets `covered` to false if no function contains `address`: the rule is that of padding, or kNone.
  Rule At(uint64_t address, bool& covered);

  // Returns true if a function contains `address`. Padding is not part of functions.
  bool IsCovered(uint64_t address);
  // Returns true if `address` is the first byte of a function.
  bool IsFunctionBegin(uint64_t address);

  // Writes the whole row at `address` to `row`. Returns false if there is none. Runs the function's program each time,
  // in about a microsecond.
  bool Full(uint64_t address, CfiRow& row);

  // Returns the address of the jump to a landing pad (RuleKind::kInstalls) in the function that contains `address`, or
  // nullopt: only some functions of libgcc have one.
  std::optional<uint64_t> LandingJumpIn(uint64_t address);

  // Returns the first address of the function that contains `address`, or nullopt if there is no information.
  std::optional<uint64_t> FunctionAt(uint64_t address);

  // Returns all changes of the rule in the module, in ascending order. Code without information has kNone. The rules of
  // successive changes may be equal. Where functions overlap, which compilers do not make, the one that begins last wins,
  // and after it At may know more: the function around it.
  std::vector<RuleChange> Changes();

  // As above, with slow(row, rule) in place of each rule that is kSlow. `slow` must not use this Cfi.
  using SlowRule = absl::FunctionRef<Rule(const CfiRow& row, const Rule& rule)>;
  std::vector<RuleChange> Changes(SlowRule slow);
  // As above, with as(row) as the rule of each row. Where it returns kNone, that of the other section is taken. `as`
  // must not use this Cfi.
  using AsRule = absl::FunctionRef<Rule(const CfiRow& row)>;
  std::vector<RuleChange> ChangesAs(AsRule as);

  size_t heap_bytes() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;  // Null if there is no information.
};

}  // namespace perfkit::unwind
