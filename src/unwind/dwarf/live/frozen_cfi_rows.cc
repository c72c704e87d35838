// Keeps each distinct row once, and finds its number with a FrozenTable.
#include "src/unwind/dwarf/live/frozen_cfi_rows.h"

#include <string>
#include <unordered_map>

#include "src/unwind/dwarf/live/frozen_builder.h"

namespace perfkit::unwind {
namespace {

// Valid modules have some hundred. Further rows are not kept.
constexpr size_t kMaxRows = 10'000;

bool IsExpression(const Recipe& recipe) {
  return recipe.how == Recovery::kExpression || recipe.how == Recovery::kAtExpression;
}

template <class T>
void Append(std::string& text, const T& value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Returns all contents of a row, for comparison.
std::string TextOf(const CfiRow& row) {
  std::string text;
  const auto add = [&](uint32_t number, const Recipe& recipe) {
    Append(text, number);
    Append(text, recipe.how);
    Append(text, recipe.number);
    if (!IsExpression(recipe)) return Append(text, recipe.value);
    const base::Bytes bytes = row.Expression(recipe);
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  add(row.return_register, row.cfa);
  Append(text, row.signal_frame);
  for (uint32_t i = 0; i < CfiRow::kRegisters; ++i) {
    if (row.registers[i].how != Recovery::kUnspecified) add(i, row.registers[i]);
  }
  return text;
}

}  // namespace

FrozenCfiRows::FrozenCfiRows(Cfi& cfi, const MachineRegisters& machine, uint64_t preserved) {
  preserved &= ~(uint64_t{1} << machine.fp);  // All walks keep fp.
  bool all = false;
  std::unordered_map<std::string, uint32_t> numbers;
  // Rows that are not kept have a rule without a number.
  const auto as = [&](const CfiRow& row) {
    Rule number{.kind = RuleKind::kSlow};
    if (RuleFromRow(row, machine).kind == RuleKind::kSlow) {
      all |= row.cfa.how == Recovery::kRegister && row.cfa.number < 64 && (preserved >> row.cfa.number & 1) != 0;
    } else if (!all) {
      return number;
    }
    const auto [found, is_new] = numbers.emplace(TextOf(row), static_cast<uint32_t>(rows_.size() + 1));
    if (is_new && rows_.size() < kMaxRows) Keep(row);
    number.offset = found->second <= rows_.size() ? static_cast<int32_t>(found->second) : 0;
    return number;
  };
  // Once `all` turns out to be true, what was added so far lacks rows: it begins anew.
  bool added_all = false;
  do {
    added_all = all;
    FrozenBuilder builder;
    cfi.ForEachRow(as, [&](uint64_t address, const Rule& number) {
      return all == added_all && builder.Add(address, number);
    });
    if (all == added_all) builder.Build(row_numbers_);
  } while (all != added_all);
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

bool FrozenCfiRows::At(uint64_t address, CfiRow& row) const {
  const auto number = static_cast<uint32_t>(row_numbers_.At(address).offset);
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
