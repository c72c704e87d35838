// The rules of one section of call frame information, worked out a function at a time and kept.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "src/unwind/dwarf/cfi_records.h"
#include "src/unwind/dwarf/fde_index.h"
#include "src/unwind/dwarf/rule_from_row.h"

namespace perfkit::unwind {

// One thread at a time.
class FdeRules {
 public:
  // Functions are padded to 16 bytes. What is after one, and in no other, still belongs to it: no linker says so, but
  // libdw and others take it so.
  static constexpr uint64_t kPadding = 15;

  enum class Reach : uint8_t { kExact, kPadded };

  FdeRules(base::Bytes ident, const CfiSection& section, const MachineRegisters& machine);

  // kNone where nothing covers `address`.
  Rule At(uint64_t address, Reach reach);
  bool Full(uint64_t address, Reach reach, CfiRow& row);
  // Where the function begins that `address` is in; nothing where none is.
  std::optional<uint64_t> FunctionAt(uint64_t address, Reach reach);

  // Every change of rule, by address, rising; `padded`: `rule` is that of the code before. False from `visit` stops.
  // `as` makes rules of rows.
  using Visit = absl::FunctionRef<bool(uint64_t address, const Rule& rule, bool padded)>;
  using AsRule = absl::FunctionRef<Rule(const CfiRow& row)>;
  void ForEach(AsRule as, Visit visit);

  size_t heap_bytes() const;

 private:
  // A function's rows in starts_ and rules_.
  struct Function {
    uint64_t begin;
    uint64_t end;  // begin: damaged, or of no length
    uint32_t slot;
    uint32_t first;
    uint32_t rows;
  };

  const Function* Find(uint64_t address, Reach reach);
  const Function& FunctionIn(size_t slot);
  const Function& Decode(size_t slot);
  uint32_t& Bucket(uint32_t slot);
  void Forget();
  void Grow();
  Rule RuleIn(const Function& function, uint64_t address) const;

  MachineRegisters machine_;
  CfiRecords records_;
  FdeIndex index_;
  std::vector<uint32_t> starts_;  // from the function's begin
  std::vector<Rule> rules_;
  std::vector<Function> functions_;
  std::vector<uint32_t> buckets_;  // by a hash of the slot: 1 + index of functions_
};

}  // namespace perfkit::unwind
