// The source lines of one unit by address: the rows that its line program generates (DWARF 5, 6.2).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/symbolize/dwarf/unit.h"

namespace perfkit::symbolize::dwarf {

class LineTable {
 public:
  // 16 bytes, because a large program has millions. Files beyond number 65,534 are unknown; columns beyond 65,535 are
  // 0.
  struct Row {
    uint64_t address = 0;
    uint32_t line = 0;
    uint16_t file = 0, column = 0;
  };
  static constexpr uint16_t kNoFile = 0xffff;

  // Reads the table at the unit's DW_AT_stmt_list; empty if it has none.
  explicit LineTable(const Unit& unit);

  // Returns the row for `address`, or nullptr.
  const Row* Find(uint64_t address) const;

  // Returns the path of a file by its number, as it was given to the compiler. A relative path is appended to its
  // folder, and a relative folder to the compiler's working directory. Returns "" if there is no such file.
  std::string PathOf(uint64_t file) const;

  size_t rows() const { return rows_.size(); }
  size_t bytes() const;

 private:
  // A contiguous range of code, [begin, end), and its rows [first, last), which ascend.
  struct Sequence {
    uint64_t begin = 0, end = 0;
    uint32_t first = 0, last = 0;
  };
  struct File {
    std::string_view name;
    uint64_t folder = 0;
  };
  struct Header;

  // Reads the header; on success leaves `reader` at the program. ReadOldLists and ReadList read folders and files.
  bool ReadHeader(const Unit& unit, base::DwarfReader& reader, Header& header);
  void ReadOldLists(base::DwarfReader& reader);
  void ReadList(const Unit& unit, base::DwarfReader& reader, Format format, bool files);
  // Runs the line program.
  void Run(base::DwarfReader& reader, const Header& header);
  // Adds the rows from `first` on as a sequence that ends at address `end`.
  void EndSequence(size_t first, uint64_t end);
  // Sorts the sequences. Where they overlap, splits them.
  void Flatten();

  uint16_t version_ = 0;
  std::string_view comp_dir_;
  std::vector<std::string_view> folders_;
  std::vector<File> files_;
  std::vector<Row> rows_;
  std::vector<Sequence> sequences_;
};

}  // namespace perfkit::symbolize::dwarf
