// Parses metrics by recursive descent: sums of products of operands. The result is a list of steps in reverse Polish
// order: "a / (b + c)" is a, b, c, add, divide. So evaluating it needs a stack of numbers and no tree. Nesting and
// length are bounded, so that no text exhausts the stack.
#include "src/count/metric/parser.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "absl/strings/str_format.h"
#include "perfkit/measured_events.h"
#include "src/base/text.h"
#include "src/event/parse_error.h"

namespace perfkit::count {
namespace {

constexpr size_t kLongestMetric = 4096;
constexpr int kMaxDepth = 64;

constexpr std::string_view kOperandWords = "a number, an event or '('";

// Returns true for events that a CounterSet does not have.
bool IsMeasuredEvent(std::string_view name) { return name == event::kSyscalls.name || name == "calls"; }

// Returns the part of `text` after `token`, a token of it.
std::string_view After(const MetricToken& token, std::string_view text) {
  return text.substr(static_cast<size_t>(token.text.data() - text.data()) + token.text.size());
}

// Returns OK, or why `name` has no meaning on any machine. An event that cannot be counted here, or not by this user,
// is a name all the same: the metric then says why it has no value.
absl::Status CheckName(std::string_view name, const EventRoots& roots) {
  if (IsMeasuredEvent(name)) return absl::OkStatus();
  const absl::Status status = ParseEvent(name, roots).status();
  if (!absl::IsInvalidArgument(status)) return absl::OkStatus();
  const bool may_subtract = name.find('-') != std::string_view::npos && name.find('/') == std::string_view::npos;
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s%s", std::string(status.message()), may_subtract ? "; a '-' without blanks around it is part of a name" : ""));
}

}  // namespace

absl::StatusOr<Metric> MetricParser::Parse() {
  if (whole_.size() > kLongestMetric) return Wrong(whole_, "longer than any metric");
  metric_.text_ = base::Trim(whole_);
  Advance();
  if (absl::Status named = ParseName(); !named.ok()) return named;
  const char* const begin = token_.text.data();
  if (absl::Status parsed = ParseSum(0); !parsed.ok()) return parsed;
  // A metric without a name is called by its formula. Tokens are views of the text, so their distance is its length.
  const std::string_view sum(begin, static_cast<size_t>(token_.text.data() - begin));
  if (metric_.name_.empty()) metric_.name_ = base::Trim(sum);
  if (absl::Status parsed = ParseUnit(); !parsed.ok()) return parsed;
  if (metric_.events_.empty()) return Wrong(whole_, "names no event");
  return std::move(metric_);
}

void MetricParser::Advance() {
  token_ = NextToken(rest_);
  rest_ = After(token_, rest_);
}

// A name is a word before '=': no event has that character but between slashes.
absl::Status MetricParser::ParseName() {
  if (token_.kind != MetricToken::Kind::kName) return absl::OkStatus();
  if (NextToken(rest_).kind != MetricToken::Kind::kEquals) return RefuseWords();
  if (token_.text.find('/') != std::string_view::npos) return Wrong(token_.text, "a metric's name has no '/'");
  metric_.name_ = token_.text;
  Advance();
  Advance();
  return absl::OkStatus();
}

absl::Status MetricParser::RefuseWords() const {
  std::string name(token_.text);
  std::string_view rest = rest_;
  MetricToken next = NextToken(rest);
  for (; next.kind == MetricToken::Kind::kName || next.kind == MetricToken::Kind::kNumber; next = NextToken(rest)) {
    absl::StrAppendFormat(&name, "_%s", next.text);
    rest = After(next, rest);
  }
  if (next.kind != MetricToken::Kind::kEquals) return absl::OkStatus();
  return Wrong(token_.text, absl::StrFormat("a metric's name is one word: '%s = ...'", event::Printable(name)));
}

absl::Status MetricParser::ParseSum(int depth) {
  if (absl::Status parsed = ParseProduct(depth); !parsed.ok()) return parsed;
  while (token_.text == "+" || token_.text == "-") {
    const Step::Kind kind = token_.text == "+" ? Step::Kind::kAdd : Step::Kind::kSubtract;
    Advance();
    if (absl::Status parsed = ParseProduct(depth); !parsed.ok()) return parsed;
    Append({kind});
  }
  return absl::OkStatus();
}

absl::Status MetricParser::ParseProduct(int depth) {
  if (absl::Status parsed = ParseOperand(depth); !parsed.ok()) return parsed;
  while (token_.text == "*" || token_.text == "/") {
    const Step::Kind kind = token_.text == "*" ? Step::Kind::kMultiply : Step::Kind::kDivide;
    Advance();
    if (absl::Status parsed = ParseOperand(depth); !parsed.ok()) return parsed;
    Append({kind});
  }
  return absl::OkStatus();
}

absl::Status MetricParser::ParseOperand(int depth) {
  const MetricToken token = token_;
  switch (token.kind) {
    case MetricToken::Kind::kNumber: Append({Step::Kind::kNumber, token.number}); break;
    case MetricToken::Kind::kName:
      if (absl::Status added = AddEvent(token.text); !added.ok()) return added;
      break;
    case MetricToken::Kind::kOpen: {
      if (depth == kMaxDepth) return Wrong(token.text, absl::StrFormat("more than %d parentheses deep", kMaxDepth));
      Advance();
      if (absl::Status parsed = ParseSum(depth + 1); !parsed.ok()) return parsed;
      if (token_.kind != MetricToken::Kind::kClose) return Expected("an operator (+ - * /) or ')'");
      break;
    }
    default: return Expected(kOperandWords);
  }
  Advance();
  return absl::OkStatus();
}

absl::Status MetricParser::ParseUnit() {
  if (token_.kind == MetricToken::Kind::kEnd) return absl::OkStatus();
  if (token_.kind != MetricToken::Kind::kBracket) return Expected("an operator (+ - * /), a [unit] or the end");
  const size_t end = rest_.find(']');
  if (end == std::string_view::npos) return Wrong(token_.text, "a '[' without its ']'");
  const std::string_view unit = rest_.substr(0, end);
  if (event::Printable(unit) != unit) return Wrong(unit, "a unit is short text of printable characters");
  metric_.unit_ = base::Trim(unit);
  rest_.remove_prefix(end + 1);
  Advance();
  return token_.kind == MetricToken::Kind::kEnd ? absl::OkStatus() : Expected("the end");
}

absl::Status MetricParser::AddEvent(std::string_view event) {
  if (event == "seconds" || event == "duration_time") {
    Append({event == "seconds" ? Step::Kind::kSeconds : Step::Kind::kNanoseconds});
    metric_.needs_elapsed_time_ = true;
    return absl::OkStatus();
  }
  const auto known = std::ranges::find(metric_.events_, event);
  Append({Step::Kind::kEvent, 0, static_cast<size_t>(known - metric_.events_.begin())});
  if (known != metric_.events_.end()) return absl::OkStatus();
  if (absl::Status checked = check_(event); !checked.ok()) return Wrong(event, std::string(checked.message()));
  metric_.events_.emplace_back(event);
  return absl::OkStatus();
}

absl::Status MetricParser::Expected(std::string_view what) const {
  const std::string found =
      token_.kind == MetricToken::Kind::kEnd ? "the end" : absl::StrFormat("'%s'", event::Printable(token_.text));
  return Wrong(token_.text, absl::StrFormat("expected %s, not %s", what, found));
}

absl::Status MetricParser::Wrong(std::string_view piece, std::string_view why) const {
  return absl::InvalidArgumentError(absl::StrFormat("metric '%s', character %d: %s", event::Printable(whole_),
                                                    piece.data() - whole_.data() + 1, why));
}

Metric ParseOwnMetric(std::string_view text) {
  absl::StatusOr<Metric> metric = MetricParser(text, [](std::string_view) { return absl::OkStatus(); }).Parse();
  if (!metric.ok()) std::abort();  // A mistake in perfkit's own tables.
  return *std::move(metric);
}

}  // namespace perfkit::count

namespace perfkit {

absl::StatusOr<Metric> Metric::Parse(std::string_view text, const EventRoots& roots) {
  return count::MetricParser(text, [&](std::string_view name) { return count::CheckName(name, roots); }).Parse();
}

}  // namespace perfkit
