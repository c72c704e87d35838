// Builds frozen tables. Each row is encoded as the change from the row before it. A change has two encodings: relative
// (the rule's offset changes by a number of bytes) and plain (the number of the new rule). The most frequent changes of
// the module, in whichever encoding is more frequent, get the codes below kEscapes; all other changes are written with
// operands. Frequencies are counted in a sample of rows, which is accurate enough and takes constant time. The codes
// are written into lines of 64 bytes. Each line starts with a row that is stored in full, so a lookup decodes one line
// only.
#include "src/unwind/dwarf/live/frozen_builder.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>

#include "src/base/mix.h"

namespace perfkit::unwind {
namespace {

constexpr uint64_t kMaxOffset = std::numeric_limits<uint32_t>::max();
constexpr size_t kMaxRules = std::numeric_limits<uint16_t>::max();
// Steps are counted in a quarter of the rows, spread over the module: at least kSample / 4 and at most kSample.
constexpr size_t kSample = size_t{1} << 12;
constexpr uint32_t kRelative = uint32_t{1} << 31;
// Steps of longer code than this, in bytes, have no codes: they are too rare.
constexpr uint32_t kMaxDelta = (1 << 15) - 1;
constexpr size_t kLongestRow = 7;  // A code, 4 bytes of delta, 2 bytes of rule.

size_t Hash(uint64_t bits) { return static_cast<size_t>(base::Mix(bits) >> 40); }

// Returns a rule as a number, whose low half is the offset.
uint64_t Bits(const Rule& rule) { return std::bit_cast<uint64_t>(rule); }
static_assert(std::endian::native == std::endian::little);

}  // namespace

FrozenBuilder::FrozenBuilder() = default;

// Its calls are inlined, because it runs for each row and each of them takes as long as the call itself.
[[gnu::flatten]] bool FrozenBuilder::Add(uint64_t address, const Rule& rule) {
  if (rows_.empty()) base_ = address;
  const uint64_t offset = address - base_;
  const bool full = offset > kMaxOffset;
  const uint64_t bits = full ? Bits(Rule()) : Bits(rule);
  if (!rows_.empty() && bits == last_bits_) return !full;
  last_bits_ = bits;
  const uint16_t number = Number(bits);
  if (rows_.empty() || number != rows_.back().rule) {
    rows_.push_back({static_cast<uint32_t>(std::min(offset, kMaxOffset)), number});
  }
  return !full;
}

uint16_t FrozenBuilder::Number(uint64_t bits) {
  Recent& recent = recent_[Hash(bits) % recent_.size()];
  if (!recent.used || recent.bits != bits) recent = {bits, NewNumber(bits), true};
  return recent.number;
}

// The last number stands for all rules that do not fit: kSlow.
[[gnu::noinline]] uint16_t FrozenBuilder::NewNumber(uint64_t bits) {
  const auto found = numbers_.find(bits);
  if (found != numbers_.end()) return found->second;
  if (rules_.size() > kMaxRules) return static_cast<uint16_t>(kMaxRules);
  const bool last = rules_.size() == kMaxRules;
  const auto number = static_cast<uint16_t>(rules_.size());
  rules_.push_back(last ? Rule{.kind = RuleKind::kSlow} : std::bit_cast<Rule>(bits));
  if (!last) numbers_.emplace(bits, number);
  return number;
}

void FrozenBuilder::Build(FrozenTable& table) {
  if (rows_.empty()) return;
  SortRules();
  CountSteps();
  ChooseSteps(table);
  WriteLines(table);
  table.MakeIndex();
  table.base_ = base_;
  table.rows_ = rows_.size();
  table.rules_ = std::move(rules_);
}

// The 256 most frequent rules have numbers of one byte.
void FrozenBuilder::SortRules() {
  uses_.assign(rules_.size(), 0);
  for (const Row& row : rows_) ++uses_[row.rule];
  std::vector<uint16_t> order(rules_.size());
  std::iota(order.begin(), order.end(), uint16_t{0});
  std::stable_sort(order.begin(), order.end(), [&](uint16_t a, uint16_t b) { return uses_[a] > uses_[b]; });
  std::vector<uint16_t> number(rules_.size());
  std::vector<Rule> sorted(rules_.size());
  for (size_t i = 0; i < order.size(); ++i) {
    number[order[i]] = static_cast<uint16_t>(i);
    sorted[i] = rules_[order[i]];
  }
  rules_ = std::move(sorted);
  for (Row& row : rows_) row.rule = number[row.rule];
}

FrozenBuilder::Key FrozenBuilder::PlainKey(const Row& from, const Row& to) {
  const uint32_t delta = to.offset - from.offset;
  return delta > kMaxDelta ? 0 : delta << 16 | to.rule;
}

// Inline as WriteRow is, which also runs for each row.
[[gnu::always_inline]] inline FrozenBuilder::Key FrozenBuilder::RelativeKey(const Row& from, const Row& to) const {
  const uint32_t delta = to.offset - from.offset;
  const uint64_t before = Bits(rules_[from.rule]), after = Bits(rules_[to.rule]);
  const auto change = static_cast<int64_t>(static_cast<int32_t>(after)) - static_cast<int32_t>(before);
  const bool fits = (before ^ after) >> 32 == 0 && change == static_cast<int16_t>(change);
  return fits && delta <= kMaxDelta ? kRelative | delta << 16 | static_cast<uint16_t>(change) : 0;
}

FrozenBuilder::Counted* FrozenBuilder::Find(Key key) {
  const size_t mask = counted_.size() - 1;  // A power of two less 1: a division would take longer than the search.
  size_t at = Hash(key) & mask;
  while (counted_[at].key != 0 && counted_[at].key != key) at = (at + 1) & mask;
  return &counted_[at];
}

// Counts the steps of a sample of the rows in both encodings; then, for each of these rows, the more frequent one of
// its two.
void FrozenBuilder::CountSteps() {
  const size_t wanted = std::clamp(rows_.size() / 4, kSample / 4, kSample);
  const size_t stride = rows_.size() / wanted + 1;
  counted_.assign(std::bit_ceil((rows_.size() / stride + 1) * 4), {});  // Each row counts for two steps.
  const auto add = [&](Key key) -> Counted* {
    if (key == 0) return nullptr;
    Counted* const counted = Find(key);
    counted->key = key;
    ++counted->count;
    return counted;
  };
  struct Encodings {
    Counted *plain, *relative;
  };
  std::vector<Encodings> sample;
  sample.reserve(rows_.size() / stride + 1);
  for (size_t row = 1; row < rows_.size(); row += stride) {
    sample.push_back({add(PlainKey(rows_[row - 1], rows_[row])), add(RelativeKey(rows_[row - 1], rows_[row]))});
  }
  for (const auto& [plain, relative] : sample) {
    if (plain == nullptr) continue;
    const bool is_relative = relative != nullptr && relative->count >= plain->count;
    ++(is_relative ? relative : plain)->chosen;
  }
}

// Afterwards the hash table holds only the steps that have a code.
void FrozenBuilder::ChooseSteps(FrozenTable& table) {
  std::vector<Counted> usual;
  std::copy_if(counted_.begin(), counted_.end(), std::back_inserter(usual),
               [](const Counted& c) { return c.chosen > 1; });
  const auto more = [](const Counted& a, const Counted& b) {
    return a.chosen != b.chosen ? a.chosen > b.chosen : a.key < b.key;
  };
  const size_t most = std::min<size_t>(usual.size(), FrozenTable::kEscapes);
  std::partial_sort(usual.begin(), usual.begin() + static_cast<ptrdiff_t>(most), usual.end(), more);
  usual.resize(most);
  const auto plain =
      std::stable_partition(usual.begin(), usual.end(), [](const Counted& c) { return (c.key & kRelative) != 0; });
  table.relative_ = static_cast<unsigned>(plain - usual.begin());
  counted_.assign(std::bit_ceil(size_t{FrozenTable::kEscapes} * 4), {});
  for (size_t code = 0; code < usual.size(); ++code) {
    const Key key = usual[code].key;
    table.steps_.push_back({static_cast<uint16_t>((key & ~kRelative) >> 16), static_cast<uint16_t>(key)});
    *Find(key) = {.key = key, .chosen = static_cast<uint16_t>(code)};
  }
  table.steps_.shrink_to_fit();
}

[[gnu::always_inline]] inline size_t FrozenBuilder::WriteRow(size_t row, uint8_t* to) {
  const Row &from = rows_[row - 1], &next = rows_[row];
  const auto write_code = [&](Key key) {
    const Counted* const found = key == 0 ? nullptr : Find(key);
    if (found == nullptr || found->key == 0) return false;
    to[0] = static_cast<uint8_t>(found->chosen);
    return true;
  };
  if (write_code(RelativeKey(from, next)) || write_code(PlainKey(from, next))) return 1;
  const uint32_t delta = next.offset - from.offset;
  const unsigned wide = delta > 0xffff ? 2 : delta > 0xff ? 1 : 0, far = next.rule > 0xff;
  to[0] = static_cast<uint8_t>(FrozenTable::kEscapes + wide * 2 + far);
  std::memcpy(to + 1, &delta, size_t{1} << wide);
  std::memcpy(to + 1 + (size_t{1} << wide), &next.rule, 1 + far);
  return 2 + (size_t{1} << wide) + far;
}

void FrozenBuilder::WriteLines(FrozenTable& table) {
  table.lines_.reserve(rows_.size() / 32 + 1);
  size_t used = FrozenTable::kLineCodes;
  for (size_t row = 0; row < rows_.size(); ++row) {
    if (row > 0 && used + kLongestRow <= FrozenTable::kLineCodes) {  // Any row fits.
      used += WriteRow(row, table.lines_.back().codes + used);
      continue;
    }
    uint8_t bytes[kLongestRow];
    const size_t size = row == 0 ? kLongestRow : WriteRow(row, bytes);
    if (used + size > FrozenTable::kLineCodes) {
      table.starts_.push_back(rows_[row].offset);
      FrozenTable::Line& line = table.lines_.emplace_back();
      line.rule = rows_[row].rule;
      std::memset(line.codes, FrozenTable::kEnd, sizeof(line.codes));
      used = 0;
      continue;
    }
    uint8_t* const to = table.lines_.back().codes + used;
    for (size_t i = 0; i < size; ++i) to[i] = bytes[i];  // Nearly always one: memcpy would be a call.
    used += size;
  }
  table.lines_.shrink_to_fit();
  table.starts_.shrink_to_fit();
}

}  // namespace perfkit::unwind
