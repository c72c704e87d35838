// Holds the documents to the code: their C++ is compiled somewhere, their links lead somewhere, and design.md has the
// floors and the tests of each room.
#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>

#include "tests/tidy/floors.h"
#include "tests/tidy/rules.h"

namespace perfkit::tidy {
namespace {

// Returns lines without indentation and without empty lines, so that the depth of a snippet does not matter.
std::string Normalised(std::string_view text) {
  std::string result = "\n";
  for (const std::string_view line : Lines(text)) {
    const size_t first = line.find_first_not_of(" \t");
    if (first == std::string_view::npos) continue;
    result += line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
    result += '\n';
  }
  return result;
}

struct Snippet {
  size_t line;
  std::string text;
};

std::vector<Snippet> CppSnippets(const SourceFile& file) {
  std::vector<Snippet> snippets;
  bool inside = false;
  size_t number = 0;
  for (const std::string_view line : Lines(file.text)) {
    ++number;
    const size_t first = std::min(line.find_first_not_of(' '), line.size());
    const bool fence = line.substr(first).starts_with("```");
    if (inside && !fence) (snippets.back().text += line) += '\n';
    if (fence && !inside && line.substr(first).starts_with("```cpp")) {
      inside = true;
      snippets.push_back({number, ""});
    } else if (fence) {
      inside = false;
    }
  }
  return snippets;
}

constexpr std::string_view kDesign = "docs/design.md";

// Returns true if tests/ has the folder of a program: "symbolize_dwarf_test" is built from tests/symbolize/dwarf/,
// "count_test" from tests/count/.
bool IsTestProgram(const Tree& tree, std::string program) {
  program.resize(program.size() - std::string_view("_test").size());
  const size_t component = program.find('_');
  if (component != std::string::npos) program[component] = '/';
  return std::any_of(tree.begin(), tree.end(), [&](const auto& file) { return IsIn(file, "tests/" + program); });
}

// Checks that the last cell of a row names test programs that exist.
void CheckRow(const Tree& tree, const SourceFile& page, size_t line, std::string_view row, Findings& findings) {
  static const std::regex kProgram("`([a-z_]+_test)`");
  const std::string cell(row.substr(row.rfind('|', row.size() - 2)));
  std::sregex_iterator program(cell.begin(), cell.end(), kProgram), end;
  if (program == end) findings.push_back({page.path, line, "a room's row ends with its test programs: `count_test`"});
  for (; program != end; ++program) {
    if (IsTestProgram(tree, (*program)[1].str())) continue;
    findings.push_back({page.path, line, "no folder of tests/ makes " + (*program)[1].str()});
  }
}

}  // namespace

bool IsDocument(const SourceFile& file) {
  return file.path.ends_with(".md") && (file.path.find('/') == std::string::npos || IsIn(file, "docs"));
}

Findings CheckSnippets(const Tree& tree) {
  std::vector<std::string> compiled;
  for (const SourceFile& file : tree) {
    const bool counts = IsCpp(file) && (IsIn(file, "examples") || IsIn(file, "tests/compile"));
    if (counts) compiled.push_back(Normalised(file.text));
  }
  Findings findings;
  for (const SourceFile& file : tree) {
    if (!IsDocument(file)) continue;
    for (const Snippet& snippet : CppSnippets(file)) {
      const std::string wanted = Normalised(snippet.text);
      const bool found = std::any_of(compiled.begin(), compiled.end(),
                                     [&](const std::string& text) { return text.find(wanted) != std::string::npos; });
      if (!found) findings.push_back({file.path, snippet.line, "this C++ stands in no example, and not in tests/compile"});
    }
  }
  return findings;
}

Findings CheckDrawing(const Tree& tree) {
  Findings findings;
  for (const SourceFile& file : tree) {
    if (file.path != kDesign) continue;
    const size_t mark = file.text.find(kDrawingMark);
    if (mark == std::string::npos) {
      findings.push_back({file.path, 1, "has no place for the floors: " + std::string(kDrawingMark)});
    } else if (WithDrawing(file.text) != file.text) {
      findings.push_back({file.path, LineAt(file.text, mark), "the floors are not those of tests/tidy/floors.cc"});
    }
  }
  return findings;
}

Findings CheckRoomTests(const Tree& tree) {
  static const std::regex kRow(R"(^\| `([a-z/]+)/` \|.*)");
  Findings findings;
  for (const SourceFile& file : tree) {
    if (file.path != kDesign) continue;
    std::set<const Room*> rooms;
    size_t line = 0;
    for (const std::string_view row : Lines(file.text)) {
      ++line;
      std::match_results<std::string_view::const_iterator> match;
      if (!std::regex_match(row.begin(), row.end(), match, kRow)) continue;
      const Room* const room = RoomOf(match[1].str());
      if (room == nullptr) findings.push_back({file.path, line, "src/" + match[1].str() + " is on no floor"});
      rooms.insert(room);
      CheckRow(tree, file, line, row, findings);
    }
    for (const Room& room : Rooms()) {
      if (rooms.contains(&room)) continue;
      findings.push_back({file.path, 1, "the table of rooms has no row for " + std::string(room.name) + "/"});
    }
  }
  return findings;
}

Findings CheckLinks(const Tree& tree, const std::string& root) {
  static const std::regex kLink(R"(\]\(([^)#: ]+)(#[^)]*)?\))");
  Findings findings;
  for (const SourceFile& file : tree) {
    if (!IsDocument(file)) continue;
    for (std::sregex_iterator link(file.text.begin(), file.text.end(), kLink), end; link != end; ++link) {
      const std::filesystem::path target =
          std::filesystem::path(root) / std::filesystem::path(file.path).parent_path() / (*link)[1].str();
      if (std::filesystem::exists(target)) continue;
      const size_t line = LineAt(file.text, static_cast<size_t>(link->position()));
      findings.push_back({file.path, line, "leads nowhere: " + (*link)[1].str()});
    }
  }
  return findings;
}

}  // namespace perfkit::tidy
