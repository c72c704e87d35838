// The project's own files, as the lint reads them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace perfkit::tidy {

struct SourceFile {
  std::string path;  // from the project's root, with slashes
  std::string text;
};
using Tree = std::vector<SourceFile>;

struct Finding {
  std::string path;
  size_t line;  // from 1
  std::string message;
  friend bool operator==(const Finding&, const Finding&) = default;
};
using Findings = std::vector<Finding>;

// All files below `root` that people write here: no build folders, no .git, no golden data.
Tree LoadTree(const std::string& root);

bool IsCpp(const SourceFile& file);
bool IsIn(const SourceFile& file, std::string_view folder);

std::vector<std::string_view> Lines(std::string_view text);
size_t LineAt(std::string_view text, size_t offset);

// `text` of C++ with comments, and what stands inside quotes, as blanks: every offset and line stays where it was.
std::string CodeOnly(std::string_view text);
// The opposite: `text` of C++ with all but its comments as blanks.
std::string CommentsOnly(std::string_view text);

// The paths of #include lines of `file` as they are written, quotes or angle brackets kept: "\"src/sys/fd.h\"".
struct Include {
  size_t line;
  std::string what;
};
std::vector<Include> Includes(const SourceFile& file);

// Function bodies, from the first line of their heads to the closing brace. Lambdas belong to what they stand in.
struct Function {
  size_t line;
  size_t lines;
};
std::vector<Function> Functions(const SourceFile& file);

}  // namespace perfkit::tidy
