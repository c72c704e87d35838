// Builds and searches flat tables.
#include "src/unwind/dwarf/frozen_table.h"

#include <array>
#include <bit>
#include <limits>
#include <unordered_map>

namespace perfkit::unwind {
namespace {

// Numbers rules. Neighbours use the same few, so that most are found without a search.
class Interner {
 public:
  explicit Interner(std::vector<Rule>& rules) : rules_(rules) {}

  uint16_t Number(const Rule& rule) {
    const auto bits = std::bit_cast<uint64_t>(rule);
    Recent& recent = recent_[bits * 0x9e3779b97f4a7c15u >> 56];
    if (recent.used && recent.bits == bits) return recent.number;
    recent = {bits, Search(rule, bits), true};
    return recent.number;
  }

 private:
  struct Recent {
    uint64_t bits = 0;
    uint16_t number = 0;
    bool used = false;
  };

  // The last number is kept for all that find no room.
  uint16_t Search(const Rule& rule, uint64_t bits) {
    const auto found = numbers_.find(bits);
    if (found != numbers_.end()) return found->second;
    const bool full = rules_.size() >= std::numeric_limits<uint16_t>::max();
    if (full && rules_.size() > std::numeric_limits<uint16_t>::max()) return std::numeric_limits<uint16_t>::max();
    rules_.push_back(full ? Rule{.kind = RuleKind::kSlow} : rule);
    const auto number = static_cast<uint16_t>(rules_.size() - 1);
    if (!full) numbers_.emplace(bits, number);
    return number;
  }

  std::vector<Rule>& rules_;
  std::unordered_map<uint64_t, uint16_t> numbers_;
  std::array<Recent, 256> recent_;
};

}  // namespace

FrozenTable::FrozenTable(Cfi& cfi) {
  Interner interner(rules_);
  cfi.ForEachRow([&](uint64_t address, const Rule& rule) {
    if (offsets_.empty()) base_ = address;
    const uint64_t offset = address - base_;
    const bool beyond = offset > std::numeric_limits<uint32_t>::max();
    const uint16_t number = interner.Number(beyond ? Rule() : rule);
    if (offsets_.empty() || number != indices_.back()) {
      offsets_.push_back(beyond ? std::numeric_limits<uint32_t>::max() : static_cast<uint32_t>(offset));
      indices_.push_back(number);
    }
    return !beyond;
  });
  offsets_.shrink_to_fit();
  indices_.shrink_to_fit();
  rules_.shrink_to_fit();
}

// Halves what is left without asking where it is: the compiler makes a conditional move of it.
Rule FrozenTable::At(uint64_t address) const {
  const uint64_t offset = address - base_;
  if (offsets_.empty() || address < base_ || offset > std::numeric_limits<uint32_t>::max()) return {};
  const uint32_t* first = offsets_.data();
  for (size_t left = offsets_.size(); left > 1;) {
    const size_t half = left / 2;
    first += first[half] <= offset ? half : 0;
    left -= half;
  }
  return rules_[indices_[static_cast<size_t>(first - offsets_.data())]];
}

size_t FrozenTable::bytes() const {
  return sizeof(*this) + offsets_.capacity() * sizeof(uint32_t) + indices_.capacity() * sizeof(uint16_t) +
         rules_.capacity() * sizeof(Rule);
}

}  // namespace perfkit::unwind
