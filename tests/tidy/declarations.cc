// Finds declarations without a real parser. First all that could mislead is blanked out, so that offsets stay the same.
// Then a declaration ends with a `;`, or with the body of a function; and the text before an opening brace, from the
// beginning of the declaration, tells whether it opens a scope, a function or an initialiser. The text has to be
// formatted as clang-format does it: no blank before the `<` of template arguments, blanks around operators.
#include "tests/tidy/declarations.h"

#include <algorithm>
#include <cctype>
#include <regex>

#include "tests/tidy/source.h"

namespace perfkit::tidy {
namespace {

bool IsWordCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

void Blank(std::string& text, size_t from, size_t to) {
  for (size_t i = from; i < std::min(to, text.size()); ++i) {
    if (text[i] != '\n') text[i] = ' ';
  }
}

// Lines that continue a directive belong to it. Braces within directives need not match.
void BlankPreprocessor(std::string& text) {
  bool continued = false;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const size_t first = text.find_first_not_of(' ', at);
    const bool directive = continued || (first < end && text[first] == '#');
    continued = directive && end > at && text[end - 1] == '\\';
    if (directive) Blank(text, at, end);
    at = end + 1;
  }
}

// Returns the offset of the bracket that closes the one at `open`, or the text's size.
size_t Closing(std::string_view text, size_t open, char opening, char closing) {
  size_t depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    if (text[i] == opening) ++depth;
    if (text[i] == closing && --depth == 0) return i;
  }
  return text.size();
}

void BlankAttributes(std::string& text) {
  static const std::regex kAttribute(R"(\[\[|\b(alignas|__attribute__)\s*\()");
  for (std::smatch match; std::regex_search(text, match, kAttribute);) {
    const size_t from = static_cast<size_t>(match.position()), open = from + static_cast<size_t>(match.length()) - 1;
    const bool brackets = text[open] == '[';
    Blank(text, from, 1 + Closing(text, brackets ? from : open, brackets ? '[' : '(', brackets ? ']' : ')'));
  }
}

bool OpensTemplate(std::string_view text, size_t at) {
  const std::string_view before = text.substr(0, at);
  return before.ends_with("template ") || (at > 0 && IsWordCharacter(before.back()) && !before.ends_with("operator"));
}

// Returns the end of the template arguments that open at `at`, or `at` if that is a comparison.
size_t EndOfArguments(std::string_view text, size_t at) {
  size_t depth = 0;
  for (size_t i = at; i < text.size() && text[i] != ';'; ++i) {
    const bool is_operator = text[i - 1] == ' ' || text[i - 1] == '-' || (text[i - 1] == '<' && text[i] == '<');
    if (is_operator && i != at) continue;
    if (text[i] == '<') ++depth;
    if (text[i] == '>' && --depth == 0) return i;
  }
  return at;
}

void BlankTemplateArguments(std::string& text) {
  for (size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at + 1)) {
    if (OpensTemplate(text, at)) Blank(text, at + 1, EndOfArguments(text, at));
  }
}

void BlankSubscripts(std::string& text) {
  for (size_t at = text.find('['); at != std::string::npos; at = text.find('[', at + 1)) {
    Blank(text, at + 1, Closing(text, at, '[', ']'));
  }
}

// Returns the offset of the first `=` outside of parentheses; npos if there is none.
size_t FindValue(std::string_view head) {
  size_t depth = 0;
  for (size_t i = 0; i < head.size(); ++i) {
    if (head[i] == '(') ++depth;
    if (head[i] == ')') --depth;
    if (head[i] == '=' && depth == 0) return i;
  }
  return std::string_view::npos;
}

// Returns what an opening brace opens, by the declaration's text before it; kOther is an initialiser.
Declaration::Kind Classify(std::string_view head) {
  if (HasWord(head, "enum")) return Declaration::Kind::kEnum;
  const size_t first = std::min(head.find_first_not_of(" \n"), head.size());
  const size_t last = std::min(head.find_last_not_of(" \n"), head.size());
  const bool is_linkage = head.substr(first).starts_with("extern ") && last < head.size() && last - first == 5;
  if (HasWord(head, "namespace") || is_linkage) return Declaration::Kind::kNamespace;
  if (HasWord(head, "operator")) return Declaration::Kind::kFunction;
  if (FindValue(head) != std::string_view::npos) return Declaration::Kind::kOther;
  if (head.find('(') == std::string_view::npos) {
    const bool is_class = HasWord(head, "class") || HasWord(head, "struct") || HasWord(head, "union");
    return is_class ? Declaration::Kind::kClass : Declaration::Kind::kOther;
  }
  // Foo::Foo(int a) : a_{a} {  a brace after a name, after the colon, initialises a member.
  static const std::regex kColon(R"(\)[^:()]*:[^:])");
  const bool constructor = std::regex_search(head.begin(), head.end(), kColon);
  const bool after_name = last < head.size() && (IsWordCharacter(head[last]) || head[last] == '>');
  return constructor && after_name ? Declaration::Kind::kOther : Declaration::Kind::kFunction;
}

bool IsAccessSpecifier(std::string_view head) {
  const size_t first = head.find_first_not_of(" \n"), last = head.find_last_not_of(" \n");
  if (first == std::string_view::npos) return false;
  const std::string_view word = head.substr(first, last + 1 - first);
  return word == "public" || word == "protected" || word == "private";
}

}  // namespace

bool HasWord(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !IsWordCharacter(text[at - 1])) && (end == text.size() || !IsWordCharacter(text[end]))) return true;
  }
  return false;
}

std::string Skeleton(std::string_view text) {
  std::string skeleton = CodeOnly(text);
  BlankPreprocessor(skeleton);
  BlankAttributes(skeleton);
  BlankTemplateArguments(skeleton);
  BlankSubscripts(skeleton);
  return skeleton;
}

std::vector<Declaration> Declarations(std::string_view skeleton, size_t begin, size_t end) {
  using Kind = Declaration::Kind;
  std::vector<Declaration> found;
  Declaration now{Kind::kOther, begin, begin, 0, 0};
  const auto next = [&](size_t at) { now = {Kind::kOther, at, at, 0, 0}; };
  const auto finish = [&](size_t at) {
    now.begin = std::min(skeleton.find_first_not_of(" \n", now.begin), at);
    now.end = at;
    if (now.begin + 1 < at) found.push_back(now);
    next(at);
  };
  for (size_t i = begin; i < end; ++i) {
    const std::string_view head = skeleton.substr(now.begin, i - now.begin);
    if (skeleton[i] == ';') finish(i + 1);
    if (skeleton[i] == ':' && IsAccessSpecifier(head)) next(i + 1);
    if (skeleton[i] == '(') i = Closing(skeleton, i, '(', ')');
    if (i >= end || skeleton[i] != '{') continue;
    const size_t close = std::min(Closing(skeleton, i, '{', '}'), end);
    const Kind kind = Classify(head);
    if (kind != Kind::kOther) now.kind = kind, now.body_begin = i + 1, now.body_end = close;
    i = close;
    if (kind == Kind::kFunction || kind == Kind::kNamespace) finish(close + 1);
  }
  return found;
}

}  // namespace perfkit::tidy
