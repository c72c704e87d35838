// Reads the tree, and parses C++ as far as the rules need it: comments, literals, includes, function bodies. Comments
// and literals are blanked out, so that offsets stay the same (declarations.cc does the rest).
#include "tests/tidy/source.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/tidy/declarations.h"

namespace perfkit::tidy {
namespace {

constexpr std::string_view kFolders[] = {".ci", "bench", "cmake", "docs", "examples", "include", "src", "tests"};
constexpr std::string_view kEndings[] = {".cc", ".h", ".cmake", ".txt", ".md", ".in", ".map", "run"};

bool IsOurs(const std::string& path) {
  if (path.find("/golden/") != std::string::npos || path.find("/corpus/") != std::string::npos) return false;
  return std::any_of(std::begin(kEndings), std::end(kEndings), [&](auto ending) { return path.ends_with(ending); });
}

SourceFile Load(const std::filesystem::path& root, const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return {std::filesystem::relative(path, root).generic_string(), text.str()};
}

// Returns the end of the literal or comment that starts at `at`; `at` itself if there is none.
size_t EndOfQuiet(std::string_view text, size_t at) {
  const auto end_of = [&](std::string_view mark, size_t from) {
    const size_t found = text.find(mark, from);
    return found == std::string_view::npos ? text.size() : found + mark.size();
  };
  if (text.substr(at).starts_with("//")) return std::min(text.find('\n', at), text.size());
  if (text.substr(at).starts_with("/*")) return end_of("*/", at + 2);
  if (text.substr(at).starts_with("R\"")) {
    const size_t open = std::min(text.find('(', at), text.size());
    return end_of(")" + std::string(text.substr(at + 2, open - at - 2)) + "\"", open);
  }
  const bool digit_before = at > 0 && std::isxdigit(static_cast<unsigned char>(text[at - 1]));
  if (text[at] != '"' && (text[at] != '\'' || digit_before)) return at;
  size_t i = at + 1;
  while (i < text.size() && text[i] != text[at] && text[i] != '\n') i += text[i] == '\\' ? 2 : 1;
  return std::min(i + 1, text.size());
}

void AddFunctions(std::string_view skeleton, size_t begin, size_t end, std::vector<Function>& found) {
  for (const Declaration& declaration : Declarations(skeleton, begin, end)) {
    if (declaration.kind == Declaration::Kind::kFunction) {
      const size_t line = LineAt(skeleton, declaration.begin);
      found.push_back({line, LineAt(skeleton, declaration.body_end) - line + 1});
    } else if (declaration.kind != Declaration::Kind::kOther) {
      AddFunctions(skeleton, declaration.body_begin, declaration.body_end, found);
    }
  }
}

}  // namespace

Tree LoadTree(const std::string& root) {
  Tree tree;
  for (const char* file : {"CHANGELOG.md", "CMakeLists.txt", "CONTRIBUTING.md", "README.md", "SECURITY.md"}) {
    if (std::filesystem::exists(root + "/" + file)) tree.push_back(Load(root, root + "/" + file));
  }
  for (const std::string_view folder : kFolders) {
    const std::filesystem::path path = root + "/" + std::string(folder);
    if (!std::filesystem::exists(path)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
      if (entry.is_regular_file() && IsOurs(entry.path().string())) tree.push_back(Load(root, entry.path()));
    }
  }
  std::sort(tree.begin(), tree.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return tree;
}

bool IsCpp(const SourceFile& file) { return file.path.ends_with(".cc") || file.path.ends_with(".h"); }

bool IsIn(const SourceFile& file, std::string_view folder) {
  return file.path.starts_with(folder) && file.path.substr(folder.size()).starts_with("/");
}

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

size_t LineAt(std::string_view text, size_t offset) {
  return 1 + static_cast<size_t>(std::count(text.begin(), text.begin() + offset, '\n'));
}

std::string CodeOnly(std::string_view text) {
  std::string code(text);
  for (size_t at = 0; at < text.size();) {
    const size_t end = EndOfQuiet(text, at);
    for (size_t i = at; i < end; ++i) code[i] = text[i] == '\n' ? '\n' : ' ';
    at = std::max(end, at + 1);
  }
  return code;
}

std::string CommentsOnly(std::string_view text) {
  std::string comments(text);
  for (size_t at = 0; at < text.size();) {
    const size_t end = EndOfQuiet(text, at);
    const size_t next = std::max(end, at + 1);
    const bool is_comment = end > at && text[at] == '/';
    for (size_t i = at; i < next && !is_comment; ++i) comments[i] = text[i] == '\n' ? '\n' : ' ';
    at = next;
  }
  return comments;
}

std::vector<Include> Includes(const SourceFile& file) {
  static const std::regex kInclude(R"(^\s*#\s*include\s*(["<][^">]+[">]).*)");
  std::vector<Include> found;
  size_t number = 0;
  for (const std::string_view line : Lines(file.text)) {
    ++number;
    std::match_results<std::string_view::const_iterator> match;
    if (std::regex_match(line.begin(), line.end(), match, kInclude)) found.push_back({number, match[1].str()});
  }
  return found;
}

std::vector<Function> Functions(const SourceFile& file) {
  const std::string skeleton = Skeleton(file.text);
  std::vector<Function> found;
  AddFunctions(skeleton, 0, skeleton.size(), found);
  return found;
}

}  // namespace perfkit::tidy
