// Keeps each distinct row once, and finds its number with a FrozenTable: that of the rules, or one of its own.
#include "src/unwind/dwarf/live/frozen_cfi_rows.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <unordered_map>

#include "src/base/mix.h"
#include "src/unwind/dwarf/live/frozen_builder.h"

namespace perfkit::unwind {
namespace {

// Valid modules have some hundred. Further rows are not kept.
constexpr size_t kMaxRows = 10'000;

bool IsExpression(const Recipe& recipe) {
  return recipe.how == Recovery::kExpression || recipe.how == Recovery::kAtExpression;
}

uint64_t Hash(uint64_t hash, uint64_t value) {
  hash = base::Mix(hash ^ value);
  return hash ^ hash >> 32;
}

uint64_t Hash(uint64_t hash, const CfiRow& row, const Recipe& recipe) {
  hash = Hash(hash, uint64_t{recipe.number} << 8 | static_cast<uint64_t>(recipe.how));
  if (!IsExpression(recipe)) return Hash(hash, static_cast<uint64_t>(recipe.value));
  const base::Bytes bytes = row.Expression(recipe);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return Hash(hash, std::hash<std::string_view>()(text));
}

uint64_t HashOf(const CfiRow& row) {
  uint64_t hash = Hash(uint64_t{row.return_register} * 2 + (row.signal_frame ? 1 : 0), row, row.cfa);
  for (uint32_t i = 0; i < CfiRow::kRegisters; ++i) {
    if (row.registers[i].how != Recovery::kUnspecified) hash = Hash(Hash(hash, i), row, row.registers[i]);
  }
  return hash;
}

}  // namespace

FrozenCfiRows::FrozenCfiRows(Cfi& cfi, const MachineRegisters& machine, uint64_t preserved, FrozenTable& rules,
                             absl::FunctionRef<void(uint64_t)> on_landing_jump) {
  preserved &= ~(uint64_t{1} << machine.fp);  // All walks keep fp.
  bool needs_all = false;
  // Key: the hash of a row. Value: the number of the last kept row with that hash.
  std::unordered_map<uint64_t, int32_t> numbers;
  const auto number_of = [&](const CfiRow& row) {
    int32_t& number = numbers[HashOf(row)];
    if (number != 0 && IsKept(rows_[static_cast<size_t>(number) - 1], row)) return number;
    if (rows_.size() == kMaxRows) return 0;
    Keep(row);
    return number = static_cast<int32_t>(rows_.size());
  };
  const auto keep_slow = [&](const CfiRow& row, Rule rule) {
    needs_all |= row.cfa.how == Recovery::kRegister && row.cfa.number < 64 && (preserved >> row.cfa.number & 1) != 0;
    rule.offset = number_of(row);
    return rule;
  };
  rules = FrozenTable(cfi, keep_slow, on_landing_jump);
  if (needs_all) {
    const auto as = [&](const CfiRow& row) {
      if (row.cfa.how == Recovery::kUnspecified) return Rule();  // .debug_frame may have a CFA there.
      return Rule{.offset = number_of(row), .kind = RuleKind::kSlow};
    };
    FrozenBuilder(cfi.ChangesAs(as)).Build(row_numbers_);
  }
  rows_.shrink_to_fit();
  registers_.shrink_to_fit();
  expressions_.shrink_to_fit();
}

Recipe FrozenCfiRows::Own(const CfiRow& row, Recipe recipe) {
  if (!IsExpression(recipe)) return recipe;
  const base::Bytes bytes = row.Expression(recipe);
  recipe.value = static_cast<int64_t>(expressions_.size());
  expressions_.insert(expressions_.end(), bytes.begin(), bytes.end());
  return recipe;
}

void FrozenCfiRows::Keep(const CfiRow& row) {
  const auto first = static_cast<uint32_t>(registers_.size());
  for (uint32_t i = 0; i < CfiRow::kRegisters; ++i) {
    if (row.registers[i].how != Recovery::kUnspecified) registers_.push_back({Own(row, row.registers[i]), i});
  }
  const auto count = static_cast<uint8_t>(registers_.size() - first);
  rows_.push_back({Own(row, row.cfa), row.return_register, first, count, row.signal_frame});
}

bool FrozenCfiRows::IsSame(const Recipe& kept, const CfiRow& row, const Recipe& recipe) const {
  if (!IsExpression(recipe)) return kept == recipe;
  const base::Bytes bytes = row.Expression(recipe);
  return kept.how == recipe.how && kept.number == bytes.size() &&
         std::equal(bytes.begin(), bytes.end(), expressions_.begin() + kept.value);
}

bool FrozenCfiRows::IsKept(const Kept& kept, const CfiRow& row) const {
  if (!IsSame(kept.cfa, row, row.cfa) || kept.return_register != row.return_register ||
      kept.signal_frame != row.signal_frame) {
    return false;
  }
  const Register* next = registers_.data() + kept.first;
  const Register* const end = next + kept.count;
  for (uint32_t i = 0; i < CfiRow::kRegisters; ++i) {
    if (row.registers[i].how == Recovery::kUnspecified) continue;
    if (next == end || next->number != i || !IsSame(next->recipe, row, row.registers[i])) return false;
    ++next;
  }
  return next == end;
}

bool FrozenCfiRows::At(uint64_t address, const FrozenTable& rules, CfiRow& row) const {
  const Rule rule = (row_numbers_.rows() != 0 ? row_numbers_ : rules).At(address);
  const auto number = rule.kind == RuleKind::kSlow ? static_cast<uint32_t>(rule.offset) : 0;
  if (number == 0 || number > rows_.size()) return false;
  const Kept& kept = rows_[number - 1];
  row.cfa = kept.cfa;
  row.return_register = kept.return_register;
  row.signal_frame = kept.signal_frame;
  row.section = expressions_;
  for (Recipe& recipe : row.registers) recipe = {};
  for (uint32_t i = 0; i < kept.count; ++i) {
    const Register& saved = registers_[kept.first + i];
    row.registers[saved.number] = saved.recipe;
  }
  return row.cfa.how != Recovery::kUnspecified;
}

size_t FrozenCfiRows::heap_bytes() const {
  return row_numbers_.heap_bytes() + rows_.capacity() * sizeof(Kept) + registers_.capacity() * sizeof(Register) +
         expressions_.capacity();
}

}  // namespace perfkit::unwind
