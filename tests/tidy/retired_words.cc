// Checks the vocabulary: no retired name in code, and no retired phrase in comments, documents and texts.
#include <algorithm>
#include <cctype>
#include <string>

#include "tests/tidy/rules.h"
#include "tests/tidy/vocabulary.h"

namespace perfkit::tidy {
namespace {

using Scope = Retired::Scope;

bool IsNameCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// "kFoo*" matches each longer name that begins with "kFoo" and continues with another word.
bool IsRetired(std::string_view pattern, std::string_view name) {
  if (!pattern.ends_with('*')) return name == pattern;
  pattern.remove_suffix(1);
  if (!name.starts_with(pattern) || name.size() == pattern.size()) return false;
  return pattern.ends_with('_') || std::isupper(static_cast<unsigned char>(name[pattern.size()])) != 0;
}

Finding Report(const SourceFile& file, size_t line, const Retired& retired) {
  return {file.path, line, "'" + std::string(retired.word) + "' is retired; write " + std::string(retired.use)};
}

void CheckNames(const SourceFile& file, std::string_view text, Scope scope, Findings& findings) {
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    while (at < text.size() && IsNameCharacter(text[at])) ++at;
    if (at == begin) {
      ++at;
      continue;
    }
    const std::string_view name = text.substr(begin, at - begin);
    for (const Retired& retired : RetiredWords()) {
      if (retired.scope == scope && IsRetired(retired.word, name)) {
        findings.push_back(Report(file, LineAt(text, begin), retired));
      }
    }
  }
}

// A file in lower case on one line, without the marks at the begin of comment lines, because phrases may be wrapped.
struct FlatText {
  std::string text;
  std::vector<size_t> line_starts;
};

FlatText Flatten(std::string_view text) {
  FlatText flat;
  for (std::string_view line : Lines(text)) {
    flat.line_starts.push_back(flat.text.size());
    line.remove_prefix(std::min(line.find_first_not_of(" /#"), line.size()));
    for (const char c : line) flat.text.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
    flat.text.push_back(' ');
  }
  return flat;
}

void CheckPhrase(const SourceFile& file, const FlatText& flat, const Retired& retired, Findings& findings) {
  const std::string& text = flat.text;
  for (size_t at = text.find(retired.word); at != std::string::npos; at = text.find(retired.word, at + 1)) {
    const size_t end = at + retired.word.size();
    if ((at > 0 && IsNameCharacter(text[at - 1])) || (end < text.size() && IsNameCharacter(text[end]))) continue;
    const auto next_line = std::upper_bound(flat.line_starts.begin(), flat.line_starts.end(), at);
    findings.push_back(Report(file, static_cast<size_t>(next_line - flat.line_starts.begin()), retired));
  }
}

}  // namespace

Findings CheckVocabulary(const Tree& tree) {
  Findings findings;
  for (const SourceFile& file : tree) {
    if (file.path == "tests/tidy/vocabulary.cc") continue;
    CheckNames(file, file.text, Scope::kName, findings);
    if (IsCpp(file)) CheckNames(file, CodeOnly(file.text), Scope::kCodeName, findings);
    const FlatText flat = Flatten(file.text);
    for (const Retired& retired : RetiredWords()) {
      if (retired.scope == Scope::kPhrase) CheckPhrase(file, flat, retired, findings);
    }
  }
  return findings;
}

}  // namespace perfkit::tidy
