// Checks sizes and forms: lengths of files and functions, a first line that says what the file is, white space.
#include <algorithm>
#include <cstdio>
#include <set>
#include <sstream>

#include "tests/tidy/rules.h"

namespace perfkit::tidy {
namespace {

constexpr size_t kFileLines = 400, kFunctionLines = 60, kRootCMakeLines = 200;

void Limit(const SourceFile& file, size_t line, const char* what, size_t is, size_t most, Findings& findings) {
  if (is <= most) return;
  findings.push_back(
      {file.path, line,
       std::string(what) + " of " + std::to_string(is) + " lines; at most " + std::to_string(most) + " are allowed"});
}

bool StartsWithComment(const SourceFile& file) {
  std::vector<std::string_view> lines = Lines(file.text);
  if (!lines.empty() && lines[0].starts_with("#!")) lines.erase(lines.begin());
  if (lines.empty()) return false;
  return IsCpp(file) ? lines[0].starts_with("// ") && lines[0].size() > 10 : lines[0].starts_with("# ");
}

size_t Percentile(std::vector<size_t> values, size_t percent) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) * percent / 100];
}

// Statistics of one folder's C++.
struct Shape {
  std::vector<size_t> files, functions;
  size_t comments = 0, code = 0;

  void Add(const SourceFile& file) {
    const std::vector<std::string_view> lines = Lines(file.text);
    files.push_back(lines.size());
    for (const Function& function : Functions(file)) functions.push_back(function.lines);
    const std::string blanked = CodeOnly(file.text);
    const std::vector<std::string_view> code_lines = Lines(blanked);
    for (size_t i = 0; i < lines.size(); ++i) {
      const bool has_code = code_lines[i].find_first_not_of(' ') != std::string_view::npos;
      code += has_code;
      comments += lines[i].find("//") != std::string_view::npos;
    }
  }
};

}  // namespace

Findings CheckLengths(const Tree& tree) {
  Findings findings;
  for (const SourceFile& file : tree) {
    if (file.path.ends_with(".md")) continue;
    const size_t lines = Lines(file.text).size();
    Limit(file, 1, "a file", lines, kFileLines, findings);
    if (file.path == "CMakeLists.txt") Limit(file, 1, "a root CMakeLists.txt", lines, kRootCMakeLines, findings);
    if (!IsCpp(file)) continue;
    for (const Function& function : Functions(file)) {
      Limit(file, function.line, "a function", function.lines, kFunctionLines, findings);
    }
  }
  return findings;
}

Findings CheckFirstLines(const Tree& tree) {
  Findings findings;
  for (const SourceFile& file : tree) {
    if (file.path.ends_with(".md") || file.path.ends_with(".in")) continue;
    if (!StartsWithComment(file)) findings.push_back({file.path, 1, "the first line must be a comment: what this is"});
  }
  return findings;
}

Findings CheckWhiteSpace(const Tree& tree) {
  Findings findings;
  for (const SourceFile& file : tree) {
    const std::vector<std::string_view> lines = Lines(file.text);
    for (size_t i = 0; i < lines.size(); ++i) {
      if (lines[i].ends_with(' ') || lines[i].ends_with('\t') || lines[i].ends_with('\r')) {
        findings.push_back({file.path, i + 1, "a blank at the end of the line"});
      }
    }
    if (!file.text.empty() && !file.text.ends_with('\n')) {
      findings.push_back({file.path, lines.size(), "the last line must end with a newline"});
    }
  }
  return findings;
}

std::string DescribeShape(const Tree& tree) {
  std::string text = "folder    files  median  lines | functions median p90 max | comment lines a code line\n";
  size_t library = 0, tests = 0;
  for (const char* folder : {"include", "src", "tests", "examples", "bench"}) {
    Shape shape;
    for (const SourceFile& file : tree) {
      if (IsCpp(file) && IsIn(file, folder)) shape.Add(file);
    }
    if (shape.files.empty()) continue;
    char line[160];
    snprintf(line, sizeof(line), "%-9s %5zu %7zu %6zu | %9zu %6zu %3zu %3zu | %.2f\n", folder, shape.files.size(),
             Percentile(shape.files, 50), shape.code + shape.comments, shape.functions.size(),
             Percentile(shape.functions, 50), Percentile(shape.functions, 90), Percentile(shape.functions, 100),
             static_cast<double>(shape.comments) / static_cast<double>(std::max<size_t>(shape.code, 1)));
    text += line;
    (std::string_view(folder) == "tests" ? tests : library) += std::string_view(folder) == "bench" ? 0 : shape.code;
    if (std::string_view(folder) == "examples") library -= shape.code;
  }
  char ratio[80];
  snprintf(ratio, sizeof(ratio), "test lines a code line: %.2f\n",
           static_cast<double>(tests) / static_cast<double>(std::max<size_t>(library, 1)));
  return text + ratio;
}

}  // namespace perfkit::tidy
