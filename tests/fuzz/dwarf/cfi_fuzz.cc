// Fuzzes the reader of call frame information with modules: all rows are asked for, and their expressions evaluated.
#include <elf.h>

#include "src/unwind/dwarf/cfi/cfi.h"
#include "src/unwind/dwarf/cfi/expression.h"
#include "src/unwind/dwarf/cfi/usual_program.h"
#include "src/unwind/dwarf/live/frozen_table.h"
#include "tests/fuzz/fuzz_target.h"

namespace perfkit {
namespace {

// Every expression of a row, in a world where each register and each word is its own number.
void EvaluateAll(const unwind::CfiRow& row) {
  using Value = std::optional<uint64_t>;
  const auto memory = [](uint64_t address, unsigned) -> Value { return address; };
  const auto reg = [](uint64_t number) -> Value { return number; };
  const auto run = [&](const unwind::Recipe& recipe) {
    const base::Bytes bytes = row.Expression(recipe);
    PERFKIT_FUZZ_CHECK(bytes.size() == recipe.number);
    unwind::Evaluate(bytes, 0x1000, {memory, reg, 0x1000});
  };
  for (const unwind::Recipe& recipe : row.registers) {
    if (recipe.how == unwind::Recovery::kAtExpression || recipe.how == unwind::Recovery::kExpression) run(recipe);
  }
  if (row.cfa.how == unwind::Recovery::kExpression) run(row.cfa);
}

void LookUp(unwind::Cfi& cfi, const unwind::FrozenTable& frozen, uint64_t address) {
  const unwind::Rule rule = cfi.At(address);
  unwind::CfiRow row;
  const bool whole = cfi.Full(address, row);
  // What has a rule has a row, but for roots, which need no CFA.
  PERFKIT_FUZZ_CHECK(whole || rule.kind == unwind::RuleKind::kNone || rule.kind == unwind::RuleKind::kRoot);
  if (whole) EvaluateAll(row);
  frozen.At(address);
}

// Checks that `changes`, those of `cfi`, are the ones that RuleFromRow gives for all rows.
void CheckRulesOfRows(unwind::Cfi& cfi, const std::vector<unwind::RuleChange>& changes,
                      const unwind::MachineRegisters& machine) {
  const auto of_rows = cfi.ChangesAs([&](const unwind::CfiRow& row) { return RuleFromRow(row, machine); });
  PERFKIT_FUZZ_CHECK(changes == of_rows);
}

}  // namespace

PERFKIT_FUZZ_TARGET(FuzzCfi) {
  const absl::StatusOr<elf::Image> image = elf::Image::Parse(std::as_bytes(std::span(data, size)));
  if (!image.ok()) return 0;
  unwind::Cfi cfi(*image, *image);
  const unwind::FrozenTable frozen(cfi);
  const std::vector<unwind::RuleChange> changes = cfi.Changes();
  CheckRulesOfRows(cfi, changes, image->machine() == EM_AARCH64 ? unwind::kArmRegisters : unwind::kX86Registers);
  uint64_t rows = 0, last = 0;
  for (const unwind::RuleChange& change : changes) {
    PERFKIT_FUZZ_CHECK(rows == 0 || change.begin > last);
    last = change.begin;
    if (rows < 2000 && ++rows % 16 < 3) LookUp(cfi, frozen, change.begin);
  }
  for (const uint64_t address : {uint64_t{0}, uint64_t{0x1000}, uint64_t{0x1010}, last + 14, ~uint64_t{0}}) {
    LookUp(cfi, frozen, address);
  }
  // Packed sections can be 1,032 times their size.
  PERFKIT_FUZZ_CHECK(cfi.heap_bytes() <= (size + 4096) * 2048);
  PERFKIT_FUZZ_CHECK(frozen.rows() <= (size + 16) * 1100);
  return 0;
}

}  // namespace perfkit
