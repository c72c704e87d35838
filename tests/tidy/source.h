// The project's own files, as the rules read them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace perfkit::tidy {

struct SourceFile {
  std::string path;  // From the project's root, with slashes.
  std::string text;
};
using Tree = std::vector<SourceFile>;

struct Finding {
  std::string path;
  size_t line;  // From 1.
  std::string message;
  friend bool operator==(const Finding&, const Finding&) = default;
};
using Findings = std::vector<Finding>;

// Returns all written files below `root`: no build folders, no .git, no golden data.
Tree LoadTree(const std::string& root);

bool IsCpp(const SourceFile& file);
bool IsIn(const SourceFile& file, std::string_view folder);

std::vector<std::string_view> Lines(std::string_view text);
size_t LineAt(std::string_view text, size_t offset);

// Returns C++ `text` with comments and the contents of literals as blanks: each offset and line stays the same.
std::string CodeOnly(std::string_view text);
// Returns C++ `text` with all but its comments as blanks.
std::string CommentsOnly(std::string_view text);

// Returns the #include lines of `file`, with paths as written, including quotes or brackets: "\"src/sys/fd.h\"".
struct Include {
  size_t line;
  std::string what;
};
std::vector<Include> Includes(const SourceFile& file);

// Returns the functions, from the first line of their heads to the closing brace. A lambda belongs to its function.
struct Function {
  size_t line;
  size_t lines;
};
std::vector<Function> Functions(const SourceFile& file);

}  // namespace perfkit::tidy
