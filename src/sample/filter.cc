// Parses filters of tracepoints by the grammar of the kernel (kernel/trace/trace_events_filter.c): terms "field
// operator value", joined by && and ||, with ! and (). A recursive descent parser checks each term against the
// tracepoint's fields and writes the filter again, with texts in quotes, which the kernel requires. Errors have the
// position, because the kernel gives none.
#include "src/sample/filter.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "src/base/number.h"
#include "src/base/text.h"
#include "src/event/suggest.h"
#include "src/event/tracepoint.h"
#include "src/sys/perf_abi.h"

namespace perfkit::sample {
namespace {

constexpr size_t kLongestFilter = 4096;  // The kernel accepts one page.
constexpr int kDeepest = 32;
// Longer operators first.
constexpr std::array<std::string_view, 8> kOperators = {"==", "!=", "<=", ">=", "<", ">", "&", "~"};

// Parses a filter and writes it in the kernel's form.
class FilterParser {
 public:
  FilterParser(const TracepointFormat& format, std::string_view text) : format_(format), whole_(text), left_(text) {}

  absl::StatusOr<std::string> Parse() {
    if (whole_.size() >= kLongestFilter) return Wrong("it exceeds the kernel's maximum of 4095 bytes");
    if (absl::Status status = ParseAny(0); !status.ok()) return status;
    SkipBlanks();
    if (!left_.empty()) return Wrong("&& or || is missing");
    return std::move(out_);
  }

 private:
  absl::Status Wrong(std::string_view what) const {
    return absl::Status(absl::StatusCode::kInvalidArgument,
                        absl::StrFormat("filter '%s' of %s, character %d: %s", whole_, format_.name(),
                                        whole_.size() - left_.size() + 1, what));
  }

  void SkipBlanks() { left_.remove_prefix(std::min(left_.find_first_not_of(" \t\n"), left_.size())); }
  bool Take(std::string_view word) {
    SkipBlanks();
    if (!left_.starts_with(word)) return false;
    left_.remove_prefix(word.size());
    out_ += word;
    return true;
  }

  // Parses terms that are joined by && or ||.
  absl::Status ParseAny(int depth) {
    if (depth > kDeepest) return Wrong("too many brackets");
    while (true) {
      if (absl::Status status = ParseTerm(depth); !status.ok()) return status;
      SkipBlanks();
      if (!left_.starts_with("&&") && !left_.starts_with("||")) return absl::OkStatus();
      out_ += ' ';
      Take(left_.substr(0, 2));
      out_ += ' ';
    }
  }

  absl::Status ParseTerm(int depth) {
    // The kernel accepts "!" before a comparison, too, any number of times.
    while (Take("!")) {
    }
    if (!Take("(")) return ParseComparison();
    if (absl::Status status = ParseAny(depth + 1); !status.ok()) return status;
    return Take(")") ? absl::OkStatus() : Wrong("a bracket is not closed");
  }

  absl::Status ParseComparison() {
    SkipBlanks();
    const size_t end = std::min(left_.find_first_of(" \t\n=!<>&~()|\"'"), left_.size());
    const std::string name(left_.substr(0, end));
    const TracepointField* const field = format_.Find(name);
    if (field == nullptr) return NoSuchField(name);
    Take(left_.substr(0, end));
    SkipBlanks();
    for (const std::string_view op : kOperators) {
      if (!left_.starts_with(op)) continue;
      out_ += ' ';
      Take(op);
      out_ += ' ';
      return ParseValue(*field, op);
    }
    return Wrong("a comparison is missing: == != < <= > >= & or, for texts, ~");
  }

  absl::Status NoSuchField(const std::string& name) const {
    std::vector<std::string> names;
    for (const TracepointField& field : format_.fields()) names.push_back(field.name);
    return Wrong(absl::StrFormat("there is no field '%s'%s", name, event::DidYouMeanOr(name, names, "there are")));
  }

  absl::Status ParseValue(const TracepointField& field, std::string_view op) {
    SkipBlanks();
    // The kernel filters by what a pointer points to, if it is a text.
    const bool text_field = field.is_text || field.type.find("char *") != std::string::npos;
    if (text_field && op != "==" && op != "!=" && op != "~") return Wrong("texts are compared by == != or ~");
    if (!text_field && op == "~") return Wrong("~ is for texts");
    if (!left_.empty() && (left_.front() == '"' || left_.front() == '\'')) return ParseQuoted(text_field);
    const size_t end = std::min(left_.find_first_of(" \t\n()&|"), left_.size());
    const std::string_view word = left_.substr(0, end);
    if (word.empty()) return Wrong("a value is missing");
    if (!text_field) {
      const std::string_view digits = word.front() == '-' ? word.substr(1) : word;
      if (!base::ParsePrefixed(digits)) return Wrong("a number is missing");
      Take(word);
      return absl::OkStatus();
    }
    if (word.find('"') != std::string_view::npos) return Wrong("a quote in the middle of a word");
    out_ += absl::StrFormat("\"%s\"", word);
    left_.remove_prefix(end);
    return absl::OkStatus();
  }

  absl::Status ParseQuoted(bool text_field) {
    if (!text_field) return Wrong("the field is a number, and this is a text");
    const char quote = left_.front();
    const size_t end = left_.find(quote, 1);
    if (end == std::string_view::npos) return Wrong("a quote is not closed");
    const std::string_view inside = left_.substr(1, end - 1);
    if (inside.find('"') != std::string_view::npos) return Wrong("the kernel accepts no quote within a text");
    out_ += absl::StrFormat("\"%s\"", inside);
    left_.remove_prefix(end + 1);
    return absl::OkStatus();
  }

  const TracepointFormat& format_;
  std::string_view whole_, left_;
  std::string out_;
};

}  // namespace

absl::StatusOr<std::string> CheckFilter(const TracepointFormat& format, std::string_view filter) {
  return FilterParser(format, filter).Parse();
}

absl::StatusOr<std::string> CheckFilter(const EventConfig& event, std::string_view filter, const EventRoots& roots) {
  if (base::Trim(filter).empty()) return std::string();
  if (event.parts.front().type != sys::kTypeTracepoint) {
    return absl::Status(absl::StatusCode::kInvalidArgument,
                        absl::StrFormat("event '%s' has a filter, but only tracepoints can have one", event.name));
  }
  const absl::StatusOr<TracepointFormat> format = event::ReadFormat(event, roots);
  if (!format.ok()) return format.status();
  return CheckFilter(*format, filter);
}

}  // namespace perfkit::sample
