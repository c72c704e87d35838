// Source lines of one unit by address: the line program, run once (DWARF 5, 6.2).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/flatten.h"
#include "src/symbolize/dwarf/unit.h"

namespace perfkit::symbolize::dwarf {

class LineTable {
 public:
  // 16 bytes: a large program has millions. Files beyond 65,534 are unknown, columns beyond 65,535 are 0.
  struct Row {
    uint64_t address = 0;
    uint32_t line = 0;
    uint16_t file = 0, column = 0;
  };
  static constexpr uint16_t kNoFile = 0xffff;

  // Of the unit, by its DW_AT_stmt_list; an empty one when it has none.
  explicit LineTable(const Unit& unit);

  // The row that covers `address`, or nullptr.
  const Row* Find(uint64_t address) const;

  // The path of a file by its number, as the compiler was given it: below its folder, and that below the folder that
  // the compiler ran in, unless they say themselves where they are. "" when there is no such file.
  std::string PathOf(uint64_t file) const;

  size_t rows() const { return rows_.size(); }
  size_t bytes() const;

 private:
  // Code without a gap, whose rows are in rising order.
  struct Sequence {
    uint32_t first = 0, last = 0;  // rows
  };
  struct File {
    std::string_view name;
    uint64_t folder = 0;
  };
  struct Header;

  bool ReadHeader(const Unit& unit, base::DwarfReader& reader, Header& header);
  void ReadOldLists(base::DwarfReader& reader);
  void ReadList(const Unit& unit, base::DwarfReader& reader, Format format, bool files);
  void Run(base::DwarfReader& reader, const Header& header);
  void EndSequence(size_t first, uint64_t end);

  uint16_t version_ = 0;
  std::string_view comp_dir_;
  std::vector<std::string_view> folders_;
  std::vector<File> files_;
  std::vector<Row> rows_;
  std::vector<Sequence> sequences_;
  base::FlatRanges ranges_;  // of sequences
};

}  // namespace perfkit::symbolize::dwarf
