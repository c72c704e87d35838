// Builds a FrozenTable: numbers the rules, chooses which changes get a code of one byte, and writes the lines.
#pragma once

#include <cstdint>
#include <vector>

#include "src/base/id_table.h"
#include "src/unwind/dwarf/live/frozen_table.h"

namespace perfkit::unwind {

class FrozenBuilder {
 public:
  // Code beyond 4 GiB from the first row is left out. Requires `rows` in ascending order.
  explicit FrozenBuilder(std::vector<RuleChange> rows);

  // Writes the table. Call it once.
  void Build(FrozenTable& table);

 private:
  // A change of the rule from one row to the next.
  struct Change {
    uint64_t delta;          // The code between the rows, in bytes.
    uint64_t before, after;  // The bits of the two rules.

    // Returns true if only the rule's offset changes: by further() bytes.
    bool is_relative() const { return (before ^ after) >> 32 == 0; }
    int32_t further() const { return static_cast<int32_t>(after - before); }
  };
  // A step that could get a code.
  struct Step {
    uint16_t delta, what;  // As FrozenTable::Step.
    bool is_relative;
    uint32_t rows;  // How many rows of the sample it encodes.
  };

  // Returns the change at a row other than the first one.
  Change ChangeAt(size_t row) const;
  // Returns the id of a change's step in codes_; 0 if too much code is between the rows. Numbers the rule if it is new.
  uint64_t StepId(const Change& change);
  // Returns the number of a rule, given by its bits.
  uint32_t Number(uint64_t bits);
  // Returns the different steps of a sample of rows.
  std::vector<Step> CountSteps();
  // Numbers the rules anew, by how often plain steps use them, and puts the new numbers into `steps`.
  void SortRules(std::vector<Step>& steps);
  // Gives codes to the most frequent steps.
  void ChooseCodes(std::vector<Step> steps, FrozenTable& table);
  void WriteLines(FrozenTable& table);
  // Writes a row with operands. Returns its number of bytes.
  size_t WriteEscaped(size_t row, const Change& change, uint8_t* to);
  // Returns the number of a row's rule, which is written. Where that stands for all rules that do not fit, the row gets
  // its rule, so that steps from there begin with it.
  uint32_t NumberToWrite(size_t row);

  std::vector<RuleChange> rows_;
  // Multiplies rules before they are searched in numbers_, so that no file can be made whose rules collide there.
  uint64_t seed_ = 1;
  std::vector<Rule> rules_;  // By number.
  base::IdTable numbers_;    // From rules to their numbers.
  base::IdTable codes_;      // From the ids of steps to their codes.
};

}  // namespace perfkit::unwind
