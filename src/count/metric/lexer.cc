// Finds the end of numbers and names. Only the text decides, never the machine: a metric means the same everywhere.
//
// The one hard question is what a slash or a minus is, since events have both: "cpu/event=0x3c/u", "L1-dcache-loads",
// and "a/b". A minus within a word belongs to the name. A slash begins terms if another one closes them and they look
// like terms, or no operand follows; else it divides.
#include "src/count/metric/lexer.h"

#include <algorithm>
#include <charconv>

#include "src/base/text.h"
#include "src/event/breakpoint.h"
#include "src/event/modifiers.h"
#include "src/event/probe.h"

namespace perfkit::count {
namespace {

constexpr bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool IsNameCharacter(char c) { return IsLetter(c) || IsDigit(c) || c == '-' || c == '.' || c == ':'; }

// Returns how many characters of a name `text` begins with, whatever the first is.
size_t NameRun(std::string_view text) {
  const auto* const end = std::find_if_not(text.begin(), text.end(), IsNameCharacter);
  return static_cast<size_t>(end - text.begin());
}

// In these events slashes are parts of paths and lengths.
bool HasPlainSlashes(std::string_view text) {
  return text.starts_with(event::kBreakpointPrefix) || text.starts_with(event::kEntryProbePrefix) ||
         text.starts_with(event::kReturnProbePrefix);
}

// Returns the position of the slash that ends the terms at the front of `text`, which begins with a slash; npos if
// there is none before something that terms do not have.
size_t ClosingSlash(std::string_view text) {
  bool quoted = false;
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '\'') quoted = !quoted;
    if (quoted) continue;
    if (text[i] == '/') return i;
    if (std::string_view(" \t\r\n()[]*+").find(text[i]) != std::string_view::npos) return std::string_view::npos;
  }
  return std::string_view::npos;
}

// Returns the length of "/terms/modifiers" at the front of `text`; 0 if the slash divides.
size_t TermsLength(std::string_view text) {
  const size_t closing = ClosingSlash(text);
  if (closing == std::string_view::npos) return 0;
  const bool surely_terms = text.substr(0, closing).find_first_of("=,'") != std::string_view::npos;
  const std::string_view rest = text.substr(closing + 1);
  const size_t run = NameRun(rest);
  std::string_view letters = rest.substr(0, run);
  if (letters.starts_with(':')) letters.remove_prefix(1);
  if (event::LooksLikeModifiers(letters)) return closing + 1 + run;
  const bool operand_follows = run > 0 || rest.starts_with('(');
  return operand_follows && !surely_terms ? 0 : closing + 1;
}

size_t EventLength(std::string_view text) {
  if (HasPlainSlashes(text)) return std::min(text.find_first_of(" \t\r\n()[]"), text.size());
  const size_t name = NameRun(text);
  // A PMU's name has no colon.
  if (text.substr(name).starts_with('/') && text.substr(0, name).find(':') == std::string_view::npos) {
    return name + TermsLength(text.substr(name));
  }
  return name;
}

}  // namespace

MetricToken NextToken(std::string_view text) {
  using Kind = MetricToken::Kind;
  text.remove_prefix(std::min(text.find_first_not_of(base::kBlanks), text.size()));
  if (text.empty()) return {.text = text};
  const char first = text.front();
  if (IsLetter(first)) return {Kind::kName, text.substr(0, EventLength(text))};
  if (IsDigit(first) || first == '.') {
    MetricToken token{Kind::kNumber};
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), token.number);
    token.text = text.substr(0, static_cast<size_t>(stop - text.data()));
    const std::string_view rest = text.substr(token.text.size());
    // "2-cycles" is a subtraction, as no number has a '-' within; "2x" is neither a number nor a name.
    const bool ends = rest.empty() || rest.front() == '-' || !IsNameCharacter(rest.front());
    if (error == std::errc{} && ends) return token;
    return {Kind::kOther, text.substr(0, std::max<size_t>(NameRun(text), 1))};
  }
  const std::string_view one = text.substr(0, 1);
  switch (first) {
    case '+':
    case '-':
    case '*':
    case '/': return {Kind::kOperator, one};
    case '(': return {Kind::kOpen, one};
    case ')': return {Kind::kClose, one};
    case '[': return {Kind::kBracket, one};
    case '=': return {Kind::kEquals, one};
    default: return {Kind::kOther, one};
  }
}

}  // namespace perfkit::count
