// The documents are true: their C++ is compiled somewhere here, and their links lead somewhere.
#include <algorithm>
#include <filesystem>
#include <regex>

#include "tests/tidy/rules.h"

namespace perfkit::tidy {
namespace {

bool IsDocument(const SourceFile& file) {
  return file.path == "README.md" || (IsIn(file, "docs") && file.path.ends_with(".md"));
}

// Lines without indentation and without empty ones, so that a snippet may stand at any depth.
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

}  // namespace

Findings CheckSnippets(const Tree& tree) {
  std::vector<std::string> compiled;
  for (const SourceFile& file : tree) {
    const bool counts = IsCpp(file) && (IsIn(file, "examples") || IsIn(file, "tests"));
    if (counts) compiled.push_back(Normalised(file.text));
  }
  Findings findings;
  for (const SourceFile& file : tree) {
    if (!IsDocument(file)) continue;
    for (const Snippet& snippet : CppSnippets(file)) {
      const std::string wanted = Normalised(snippet.text);
      const bool found = std::any_of(compiled.begin(), compiled.end(),
                                     [&](const std::string& text) { return text.find(wanted) != std::string::npos; });
      if (!found) findings.push_back({file.path, snippet.line, "this C++ stands in no example and no test"});
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
