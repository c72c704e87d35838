// Splits PMU terms.
#include "src/event/term_list.h"

#include "absl/strings/str_format.h"
#include "src/base/number.h"
#include "src/base/text.h"
#include "src/event/parse_error.h"

namespace perfkit::event {
namespace {

constexpr size_t kMaxTerms = 64;

// name='a b' is written with quotes where the shell or a comma would get at it.
std::string_view Unquote(std::string_view text) {
  const bool quoted = text.size() >= 2 && text.front() == '\'' && text.back() == '\'';
  return quoted ? text.substr(1, text.size() - 2) : text;
}

// The first comma outside quotes.
size_t EndOfTerm(std::string_view text) {
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\'') quoted = !quoted;
    if (text[i] == ',' && !quoted) return i;
  }
  return text.size();
}

// "name" or "name=value", blanks around either allowed.
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

// A term that is written twice is refused: perf lets the last one win, silently.
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

// "-1" is the likeliest mistake, and has an answer of its own.
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
