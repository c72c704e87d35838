// Packs rows into a FrozenTable: numbers their rules, works out which changes are usual, and writes the lines.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "src/unwind/dwarf/frozen_table.h"

namespace perfkit::unwind {

class FrozenBuilder {
 public:
  FrozenBuilder();

  // By address, rising. False when the table can hold no more.
  bool Add(uint64_t address, const Rule& rule);

  void Build(FrozenTable& table);

 private:
  struct Row {
    uint32_t offset;
    uint16_t rule;
  };
  // A possible step, packed into a number: delta, whether it is relative, and `what`. 0 is none.
  using Key = uint64_t;
  struct Counted {
    Key key = 0;
    uint16_t count = 0;   // of rows for which it would do
    uint16_t chosen = 0;  // of rows for which it is the more usual way
    uint8_t code = 0;
  };

  uint16_t Number(const Rule& rule);
  uint16_t NewNumber(uint64_t bits);
  void SortRules();
  Key RelativeKey(size_t row) const;
  Key PlainKey(size_t row) const;
  void CountSteps();
  void ChooseSteps(FrozenTable& table);
  Counted* Find(Key key);
  void WriteLines(FrozenTable& table);
  size_t WriteRow(size_t row, uint8_t* to);

  uint64_t base_ = 0;
  std::vector<Row> rows_;
  std::vector<Rule> rules_;
  std::vector<uint32_t> uses_;  // of each rule
  std::unordered_map<uint64_t, uint16_t> numbers_;
  struct Recent {
    uint64_t bits = 0;
    uint16_t number = 0;
    bool used = false;
  };
  std::array<Recent, 256> recent_;  // neighbours use the same few rules
  std::vector<Counted> counted_;    // a hash table
};

}  // namespace perfkit::unwind
