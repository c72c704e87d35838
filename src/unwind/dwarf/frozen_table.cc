// Searches flat tables.
#include "src/unwind/dwarf/frozen_table.h"

#include <cstring>
#include <limits>

#include "src/unwind/dwarf/frozen_builder.h"

namespace perfkit::unwind {
namespace {

// The lower bytes of a little-endian number. Lines have as many bytes left as a code has operands.
uint32_t ReadLow(const uint8_t* from, size_t size) {
  uint32_t value = 0;
  std::memcpy(&value, from, size);
  return value;
}

}  // namespace

FrozenTable::FrozenTable(Cfi& cfi) {
  FrozenBuilder builder;
  cfi.ForEachRow([&](uint64_t address, const Rule& rule) { return builder.Add(address, rule); });
  builder.Build(*this);
}

// Halves what is left without asking where it is: the compiler makes a conditional move of it.
Rule FrozenTable::At(uint64_t address) const {
  const uint64_t wanted = address - base_;
  if (starts_.empty() || address < base_ || wanted > std::numeric_limits<uint32_t>::max()) return {};
  const uint32_t* first = starts_.data();
  for (size_t left = starts_.size(); left > 1;) {
    const size_t half = left / 2;
    first += first[half] <= wanted ? half : 0;
    left -= half;
  }
  const Line& line = lines_[static_cast<size_t>(first - starts_.data())];
  Rule rule = rules_[line.rule];
  uint64_t at = *first;
  for (size_t i = 0; i < kLineCodes;) {
    const unsigned code = line.codes[i++];
    if (code < kEscapes) {
      const Step step = steps_[code];
      if ((at += step.delta) > wanted) break;
      if (code < relative_) {
        rule.offset += static_cast<int16_t>(step.what);
      } else {
        rule = rules_[step.what];
      }
      continue;
    }
    if (code == kEnd) break;
    const size_t delta_size = size_t{1} << ((code - kEscapes) / 2), rule_size = 1 + (code - kEscapes) % 2;
    if ((at += ReadLow(line.codes + i, delta_size)) > wanted) break;
    rule = rules_[ReadLow(line.codes + i + delta_size, rule_size)];
    i += delta_size + rule_size;
  }
  return rule;
}

size_t FrozenTable::bytes() const {
  return sizeof(*this) + starts_.capacity() * sizeof(uint32_t) + lines_.capacity() * sizeof(Line) +
         steps_.capacity() * sizeof(Step) + rules_.capacity() * sizeof(Rule);
}

}  // namespace perfkit::unwind
