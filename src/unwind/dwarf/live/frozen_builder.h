// Builds a FrozenTable: numbers the rules, chooses which changes get a code of one byte, and writes the lines.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "src/unwind/dwarf/live/frozen_table.h"

namespace perfkit::unwind {

class FrozenBuilder {
 public:
  FrozenBuilder();

  // Adds a row: `rule` holds from `address` on. Requires ascending addresses. Returns false if the table is full.
  bool Add(uint64_t address, const Rule& rule);

  // Writes the table. Call it once, after all rows were added.
  void Build(FrozenTable& table);

 private:
  struct Row {
    uint32_t offset;
    uint16_t rule;
  };
  // A step that could get a code, packed into a number: whether it is relative, its delta, and `what`. 0 means none.
  using Key = uint32_t;
  struct Counted {
    Key key = 0;
    uint16_t count = 0;  // Number of rows that it would encode.
    // Number of rows for which it is the more frequent of the two encodings; once codes are chosen, its code.
    uint16_t chosen = 0;
  };
  static_assert(sizeof(Counted) == 8);  // A table of them should fit into the first-level cache.

  // Return the number of a rule, given as its bits.
  uint16_t Number(uint64_t bits);
  uint16_t NewNumber(uint64_t bits);
  // Renumbers the rules by how often they are used.
  void SortRules();
  // Return the step to a row from the one before it, in the two encodings; 0 if the encoding can't express it.
  Key RelativeKey(const Row& from, const Row& to) const;
  static Key PlainKey(const Row& from, const Row& to);
  void CountSteps();
  void ChooseSteps(FrozenTable& table);
  // Returns the bucket of a step, or the empty one for it.
  Counted* Find(Key key);
  void WriteLines(FrozenTable& table);
  // Writes the codes of a row. Returns their number of bytes.
  size_t WriteRow(size_t row, uint8_t* to);

  uint64_t base_ = 0;
  uint64_t last_bits_ = 0;  // The bits of the last added rule; without meaning while rows_ is empty.
  std::vector<Row> rows_;
  std::vector<Rule> rules_;
  std::vector<uint32_t> uses_;  // By rule number: how many rows have it.
  std::unordered_map<uint64_t, uint16_t> numbers_;
  struct Recent {
    uint64_t bits = 0;
    uint16_t number = 0;
    bool used = false;
  };
  std::array<Recent, 1024> recent_;  // A cache of numbers_: neighbouring rows use the same few rules.
  std::vector<Counted> counted_;     // A hash table by key.
};

}  // namespace perfkit::unwind
