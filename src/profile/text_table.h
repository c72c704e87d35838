// Text in columns for reports: numbers with their units, names of any bytes, tables as wide as they need to be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "perfkit/profile.h"
#include "src/base/one_line.h"

namespace perfkit::profile {

// "12,345,678".
std::string CountText(uint64_t count);
// A weight in its unit: "1.234 ms", "12,345", "1.5 MiB".
std::string WeightText(uint64_t weight, ProfileUnit unit);
// 100 * part / whole with two digits after the point: "12.34"; "-" if there is no whole.
std::string PercentText(uint64_t part, uint64_t whole);
// The last part of a path, of a module or a source file. What is no path stays as it is: "[kernel]", "//anon".
std::string_view FileName(std::string_view path);
// The name and the number of a thread: "worker-42"; of a sum, Profile::ThreadName.
std::string ThreadText(const Profile& profile, uint32_t thread);

using base::Columns;
using base::CutMiddle;
using base::OneLine;

// Rows of cells below titles, each column as wide as its widest cell.
class TextTable {
 public:
  // What a column of names gives up when the table is too wide, in this order: long names down to 40 columns of text,
  // short ones to 8, long ones to 24.
  enum class Shrink : uint8_t { kNot, kShort, kLong };
  struct Column {
    std::string title;
    bool right = false;  // aligned to the right: numbers
    size_t max = 0;      // columns of text; longer cells are cut in the middle; 0: no limit
    Shrink shrink = Shrink::kNot;
  };

  explicit TextTable(std::vector<Column> columns);

  // One cell a column; the cells are made one line.
  void AddRow(std::vector<std::string> cells);
  size_t rows() const { return rows_.size(); }

  // The titles after "# ", each row after `indent`: "  ", or "# " for a table that is part of a comment.
  std::string Format(size_t width, std::string_view indent = "  ") const;

 private:
  std::vector<size_t> Widths(size_t width) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace perfkit::profile
