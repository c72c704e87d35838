// Reads the tables of libperfkit_itt.so.
#pragma once

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace perfkit::itt {

class Table {
 public:
  explicit Table(std::string text) : text_(std::move(text)) {}
  const std::string& text() const { return text_; }

  // Returns column `column` (1: calls, 2: total, 3: self) of all rows `label` in the table of `title`, added up: a task
  // has a row for each group of threads and each task around it. `title` is the beginning of a head: "page-faults". -1
  // if there is no such row, or if one of them has no number.
  double Sum(const std::string& title, const std::string& label, size_t column) const {
    std::istringstream lines(text_);
    bool inside = false;
    double sum = 0;
    int rows = 0;
    for (std::string line; std::getline(lines, line);) {
      if (line.empty()) inside = false;
      if (line.starts_with(title)) inside = true;
      const std::vector<std::string> cells = Cells(line);
      if (!inside || cells.size() <= column || cells[0] != label) continue;
      char* end = nullptr;
      sum += std::strtod(cells[column].c_str(), &end);
      if (end == cells[column].c_str()) return -1;
      ++rows;
    }
    return rows > 0 ? sum : -1;
  }
  double Calls(const std::string& label) const { return Sum("wall, ms", label, 1); }

  // Returns the number before `statement` in a line of its own; 0 if there is no such line.
  double Number(const std::string& statement) const {
    const size_t at = text_.find(" " + statement);
    if (at == std::string::npos) return 0;
    const size_t begin = text_.rfind('\n', at) + 1;
    return std::strtod(WithoutCommas(text_.substr(begin, at - begin)).c_str(), nullptr);
  }

 private:
  static std::string WithoutCommas(std::string text) {
    std::erase(text, ',');
    return text;
  }
  // Columns are two or more blanks apart; a name of a task has single ones.
  static std::vector<std::string> Cells(const std::string& line) {
    std::vector<std::string> cells;
    size_t at = line.find_first_not_of(' ');
    while (at != std::string::npos) {
      const size_t end = line.find("  ", at);
      cells.push_back(cells.empty() ? line.substr(at, end - at) : WithoutCommas(line.substr(at, end - at)));
      at = end == std::string::npos ? end : line.find_first_not_of(' ', end);
    }
    return cells;
  }

  std::string text_;
};

}  // namespace perfkit::itt
