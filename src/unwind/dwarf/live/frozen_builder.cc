// Builds frozen tables. Each row is encoded as the step from the row before it. A step is relative if only the rule's
// offset changes, by a number of bytes; all others are plain, and have the number of the new rule. The most frequent
// steps of the module get the codes below kEscapes; all other changes are written with operands. Frequencies are
// counted in a sample of rows, which is accurate enough and takes constant time. The codes are written into lines of 64
// bytes. Each line starts with a row that is stored in full, so a lookup decodes one line only.
#include "src/unwind/dwarf/live/frozen_builder.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "src/base/mix.h"

namespace perfkit::unwind {
namespace {

constexpr uint64_t kMaxOffset = std::numeric_limits<uint32_t>::max();
constexpr uint32_t kMaxRules = std::numeric_limits<uint16_t>::max();
constexpr Rule kCatchAll{.kind = RuleKind::kSlow};  // Has number kMaxRules.
// The sample is an eighth of the rows, spread over the module: at least kSample / 4 and at most kSample.
constexpr size_t kSample = size_t{1} << 12;
// Steps of longer code than this, in bytes, have no codes: they are too rare.
constexpr uint64_t kMaxDelta = (1 << 15) - 1;

// Returns a rule as a number, whose low half is the offset.
uint64_t Bits(const Rule& rule) { return std::bit_cast<uint64_t>(rule); }
static_assert(std::endian::native == std::endian::little);

// Returns a number for a step, which is not 0. `what`: as FrozenTable::Step's, of 32 bits.
uint64_t IdOf(uint64_t delta, bool is_relative, uint32_t what) {
  return delta << 33 | uint64_t{is_relative} << 32 | what;
}

}  // namespace

FrozenBuilder::FrozenBuilder(std::vector<RuleChange> rows) : rows_(std::move(rows)) {
  if (rows_.empty()) return;
  const uint64_t last = rows_[0].begin + std::min(kMaxOffset, UINT64_MAX - rows_[0].begin);
  if (rows_.back().begin > last) {
    while (rows_.back().begin >= last) rows_.pop_back();
    rows_.push_back({last, Rule()});
  }
  const auto is_same = [](const RuleChange& a, const RuleChange& b) { return Bits(a.rule) == Bits(b.rule); };
  rows_.erase(std::unique(rows_.begin(), rows_.end(), is_same), rows_.end());
  // The address is random. An odd factor keeps ids apart.
  seed_ = base::Mix(reinterpret_cast<uintptr_t>(rows_.data())) | 1;
}

[[gnu::always_inline]] inline FrozenBuilder::Change FrozenBuilder::ChangeAt(size_t row) const {
  const RuleChange &from = rows_[row - 1], &to = rows_[row];
  return {.delta = to.begin - from.begin, .before = Bits(from.rule), .after = Bits(to.rule)};
}

[[gnu::always_inline]] inline uint64_t FrozenBuilder::StepId(const Change& change) {
  if (change.delta > kMaxDelta) return 0;
  if (!change.is_relative()) return IdOf(change.delta, false, Number(change.after));
  return IdOf(change.delta, true, static_cast<uint32_t>(change.further()));
}

// The last number stands for all rules that do not fit: kSlow.
[[gnu::always_inline]] inline uint32_t FrozenBuilder::Number(uint64_t bits) {
  const uint64_t id = ~bits * seed_;  // Not 0, because no rule is ~0.
  if (rules_.size() > kMaxRules) [[unlikely]]
    return std::min(numbers_.Find(id), kMaxRules);
  const uint32_t number = numbers_.FindOrAdd(id, static_cast<uint32_t>(rules_.size()));
  if (number == rules_.size()) rules_.push_back(number == kMaxRules ? kCatchAll : std::bit_cast<Rule>(bits));
  return number;
}

[[gnu::always_inline]] inline uint32_t FrozenBuilder::NumberToWrite(size_t row) {
  const uint32_t number = Number(Bits(rows_[row].rule));
  if (number == kMaxRules) [[unlikely]]
    rows_[row].rule = kCatchAll;
  return number;
}

void FrozenBuilder::Build(FrozenTable& table) {
  if (rows_.empty()) return;
  std::vector<Step> steps = CountSteps();
  SortRules(steps);
  ChooseCodes(std::move(steps), table);
  WriteLines(table);
  table.MakeIndex();
  table.base_ = rows_[0].begin;
  table.rows_ = rows_.size();
  rules_.shrink_to_fit();
  table.rules_ = std::move(rules_);
}

std::vector<FrozenBuilder::Step> FrozenBuilder::CountSteps() {
  std::vector<Step> steps;
  base::IdTable places;  // From steps to their indices.
  const size_t wanted = std::clamp(rows_.size() / 8, kSample / 4, kSample), stride = rows_.size() / wanted + 1;
  for (size_t row = 1; row < rows_.size(); row += stride) {
    const Change change = ChangeAt(row);
    const uint64_t id = StepId(change);
    const bool fits = !change.is_relative() || change.further() == static_cast<int16_t>(change.further());
    if (id == 0 || !fits) continue;
    const uint32_t at = places.FindOrAdd(id, static_cast<uint32_t>(steps.size()));
    if (at == steps.size()) {
      steps.push_back({static_cast<uint16_t>(change.delta), static_cast<uint16_t>(id), change.is_relative(), 0});
    }
    ++steps[at].rows;
  }
  return steps;
}

// The 256 most frequent rules have numbers of one byte. Rules that the sample lacks follow when they are met.
void FrozenBuilder::SortRules(std::vector<Step>& steps) {
  std::vector<uint32_t> uses(rules_.size()), order(rules_.size()), sorted(rules_.size());
  for (const Step& step : steps) {
    if (!step.is_relative) uses[step.what] += step.rows;
  }
  std::iota(order.begin(), order.end(), uint32_t{0});
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return uses[a] > uses[b]; });
  const std::vector<Rule> rules = std::exchange(rules_, {});
  numbers_.Clear();
  for (const uint32_t number : order) sorted[number] = Number(Bits(rules[number]));
  for (Step& step : steps) {
    if (!step.is_relative) step.what = static_cast<uint16_t>(sorted[step.what]);
  }
}

void FrozenBuilder::ChooseCodes(std::vector<Step> steps, FrozenTable& table) {
  std::erase_if(steps, [](const Step& step) { return step.rows < 2; });
  const auto more = [](const Step& a, const Step& b) {
    return std::tuple(b.rows, a.is_relative, a.delta, a.what) < std::tuple(a.rows, b.is_relative, b.delta, b.what);
  };
  const size_t most = std::min<size_t>(steps.size(), FrozenTable::kEscapes);
  std::partial_sort(steps.begin(), steps.begin() + static_cast<ptrdiff_t>(most), steps.end(), more);
  steps.resize(most);
  const auto plain =
      std::stable_partition(steps.begin(), steps.end(), [](const Step& step) { return step.is_relative; });
  table.relative_ = static_cast<unsigned>(plain - steps.begin());
  table.steps_.reserve(most);
  for (const auto& [delta, what, is_relative, rows] : steps) {
    const uint32_t wide = is_relative ? static_cast<uint32_t>(static_cast<int16_t>(what)) : what;
    codes_.Add(IdOf(delta, is_relative, wide), static_cast<uint32_t>(table.steps_.size()));
    table.steps_.push_back({delta, what});
  }
}

[[gnu::always_inline]] inline size_t FrozenBuilder::WriteEscaped(size_t row, const Change& change, uint8_t* to) {
  const uint64_t delta = change.delta, rule = NumberToWrite(row);
  const unsigned wide = delta > 0xffff ? 2 : delta > 0xff ? 1 : 0, far = rule > 0xff ? 1 : 0;
  const size_t delta_bytes = size_t{1} << wide;
  const uint64_t bytes = (FrozenTable::kEscapes + wide * 2 + far) | delta << 8 | rule << (8 + 8 * delta_bytes);
  std::memcpy(to, &bytes, sizeof(bytes));
  return 2 + delta_bytes + far;
}

void FrozenBuilder::WriteLines(FrozenTable& table) {
  table.lines_.reserve(rows_.size() / 32 + 1);
  FrozenTable::Line* line = nullptr;
  size_t used = 0;
  const auto begin_line = [&](size_t row) {
    table.starts_.push_back(static_cast<uint32_t>(rows_[row].begin - rows_[0].begin));
    line = &table.lines_.emplace_back();
    line->rule = static_cast<uint16_t>(NumberToWrite(row));
    std::memset(line->codes, FrozenTable::kEnd, sizeof(line->codes));
    used = 0;
  };
  begin_line(0);
  for (size_t row = 1; row < rows_.size(); ++row) {
    const Change change = ChangeAt(row);
    uint8_t escaped[sizeof(uint64_t)];
    const uint32_t code = codes_.Find(StepId(change));
    const size_t size = code < FrozenTable::kEscapes ? 1 : WriteEscaped(row, change, escaped);
    if (used + size > FrozenTable::kLineCodes) {
      begin_line(row);
    } else if (size == 1) {
      line->codes[used++] = static_cast<uint8_t>(code);
    } else {
      for (size_t i = 0; i < size; ++i) line->codes[used++] = escaped[i];  // Few: memcpy would be a call.
    }
  }
  table.lines_.shrink_to_fit();
  table.starts_.shrink_to_fit();
}

}  // namespace perfkit::unwind
