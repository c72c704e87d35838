// Splits PMU terms.
#include "src/event/term_list.h"

#include "absl/strings/str_format.h"
#include "src/base/number.h"
#include "src/base/text.h"
#include "src/event/parse_error.h"

namespace perfkit::event {
namespace {

constexpr size_t kMaxTerms = 64;

// Returns the text in name='a b' without its quotes. They are needed for a text with a comma, and for the shell.
std::string_view Unquote(std::string_view text) {
  const bool quoted = text.size() >= 2 && text.front() == '\'' && text.back() == '\'';
  return quoted ? text.substr(1, text.size() - 2) : text;
}

// Returns the position of the first comma outside of quotes.
size_t EndOfTerm(std::string_view text) {
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\'') quoted = !quoted;
    if (text[i] == ',' && !quoted) return i;
  }
  return text.size();
}

// Parses "name" or "name=value", with optional blanks around both.
absl::StatusOr<Term> ParseTerm(std::string_view whole, std::string_view text) {
  const size_t equals = text.find('=');
  Term term{.name = base::Trim(text.substr(0, equals)), .value = {}};
  if (text.empty() || term.name.empty()) {
    return WrongAt(whole, text, "a term without a name; terms are written 'event=0x3c,umask=1'");
  }
  if (equals == std::string_view::npos) return term;
  term.value = Unquote(base::Trim(text.substr(equals + 1)));
  if (term.value->empty()) {
    return WrongAt(whole, text, absl::StrFormat("term '%s=' has no value", Printable(term.name)));
  }
  return term;
}

}  // namespace

// Refuses a term that is written twice; perf silently uses the last one.
absl::StatusOr<std::vector<Term>> SplitTerms(std::string_view whole, std::string_view text) {
  std::vector<Term> terms;
  if (base::Trim(text).empty()) return terms;
  while (true) {
    const size_t end = EndOfTerm(text);
    const absl::StatusOr<Term> term = ParseTerm(whole, text.substr(0, end));
    if (!term.ok()) return term.status();
    for (const Term& before : terms) {
      if (before.name == term->name) {
        return WrongAt(whole, term->name, absl::StrFormat("term '%s' is written twice", Printable(term->name)));
      }
    }
    terms.push_back(*term);
    if (terms.size() > kMaxTerms) return WrongAt(whole, text, absl::StrFormat("more than %d terms", kMaxTerms));
    if (end == text.size()) return terms;
    text.remove_prefix(end + 1);
  }
}

// A negative number is the likeliest mistake, and has its own message.
absl::StatusOr<uint64_t> TermNumber(std::string_view whole, const Term& term) {
  const std::string_view text = *term.value;
  const std::optional<uint64_t> number = base::ParsePrefixed(text);
  if (number) return *number;
  const bool negative = text.starts_with('-') && base::ParsePrefixed(text.substr(1)).has_value();
  const char* const why =
      negative ? "is negative: write its bits in hexadecimal" : "is no number (0x1f, 31) of 64 bits";
  return WrongAt(whole, text, absl::StrFormat("'%s' of term '%s' %s", Printable(text), Printable(term.name), why));
}

}  // namespace perfkit::event
