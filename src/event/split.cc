// Splits event lists one character at a time, with as little state as perf's scanner has.
#include "src/event/split.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "src/base/text.h"
#include "src/event/breakpoint.h"
#include "src/event/parse_error.h"
#include "src/event/probe.h"

namespace perfkit::event {
namespace {

// In these, slashes are parts of paths and lengths, and enclose nothing.
bool HasPlainSlashes(std::string_view text) {
  return text.starts_with(kBreakpointPrefix) || text.starts_with(kEntryProbePrefix) ||
         text.starts_with(kReturnProbePrefix);
}

// Returns the position of the slash that ends the PMU terms at the start of `text`: the next one outside quotes; npos
// if there is none.
size_t ClosingSlash(std::string_view text) {
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\'') quoted = !quoted;
    if (text[i] == '/' && !quoted) return i;
  }
  return std::string_view::npos;
}

// Returns the length of the event at the front of `text`: up to a comma or brace outside of its terms. A slash that is
// never closed makes the rest of the list one event, whose parser reports it.
size_t EventLength(std::string_view text) {
  const bool plain = HasPlainSlashes(base::Trim(text));
  size_t at = 0;
  while (at < text.size() && text[at] != ',' && text[at] != '{' && text[at] != '}') {
    if (text[at] != '/' || plain) {
      ++at;
      continue;
    }
    const size_t closing = ClosingSlash(text.substr(at + 1));
    if (closing == std::string_view::npos) return text.size();
    at += closing + 2;
    // Commas inside the terms were skipped: they separate terms. After them only modifiers may follow, without slashes.
    const size_t end = text.find_first_of(",{}", at);
    return end == std::string_view::npos ? text.size() : end;
  }
  return at;
}

class ListSplitter {
 public:
  explicit ListSplitter(std::string_view text) : whole_(text), rest_(text) {}

  absl::StatusOr<std::vector<ListElement>> Split() {
    std::vector<ListElement> elements;
    while (true) {
      SkipBlanks();
      ListElement element;
      const absl::Status taken = rest_.starts_with('{') ? TakeGroup(element) : TakeEvent(element);
      if (!taken.ok()) return taken;
      elements.push_back(std::move(element));
      if (rest_.empty()) return elements;
      if (rest_.front() != ',') return Misplaced();
      rest_.remove_prefix(1);
    }
  }

 private:
  void SkipBlanks() {
    const size_t first = rest_.find_first_not_of(base::kBlanks);
    rest_.remove_prefix(first == std::string_view::npos ? rest_.size() : first);
  }

  absl::Status Misplaced() const {
    return WrongAt(whole_, rest_, absl::StrFormat("a misplaced '%s'", Printable(rest_.substr(0, 1))));
  }

  absl::Status TakeEvent(ListElement& element) {
    const size_t length = EventLength(rest_);
    const std::string_view event = base::Trim(rest_.substr(0, length));
    if (event.empty()) return WrongAt(whole_, rest_, "an event is missing here");
    element.events.push_back(event);
    rest_.remove_prefix(length);
    return absl::OkStatus();
  }

  absl::Status TakeGroup(ListElement& element) {
    const std::string_view opening = rest_;
    do {
      rest_.remove_prefix(1);  // The brace, then each comma.
      SkipBlanks();
      if (rest_.starts_with('{')) return WrongAt(whole_, rest_, "groups hold events, not groups");
      if (absl::Status taken = TakeEvent(element); !taken.ok()) return taken;
    } while (rest_.starts_with(','));
    if (!rest_.starts_with('}')) return WrongAt(whole_, opening, "a '{' without its '}'");
    rest_.remove_prefix(1);
    SkipBlanks();
    if (!rest_.starts_with(':')) return absl::OkStatus();
    const size_t end = std::min(rest_.find_first_of(",{}"), rest_.size());
    element.group_modifiers = base::Trim(rest_.substr(1, end - 1));
    rest_.remove_prefix(end);
    return absl::OkStatus();
  }

  std::string_view whole_;
  std::string_view rest_;
};

}  // namespace

// Looks nothing up: whether a list is well-formed does not depend on the machine.
absl::StatusOr<std::vector<ListElement>> SplitList(std::string_view text) { return ListSplitter(text).Split(); }

// The pieces are views into `text`, so that errors about them have a position.
absl::StatusOr<std::optional<PmuText>> SplitPmuText(std::string_view text) {
  const size_t opening = text.find('/');
  if (opening == std::string_view::npos) return std::optional<PmuText>();
  const std::string_view tail = text.substr(opening + 1);
  const size_t closing = ClosingSlash(tail);
  if (closing == std::string_view::npos) {
    return WrongAt(text, text.substr(opening), "a '/' without the one that ends the terms: 'pmu/term,term=value/'");
  }
  std::string_view rest = tail.substr(closing + 1);
  PmuText parts{.pmu = text.substr(0, opening), .terms = tail.substr(0, closing), .modifiers = {}};
  if (!rest.empty()) parts.modifiers = rest.starts_with(':') ? rest.substr(1) : rest;
  return std::optional<PmuText>(parts);
}

}  // namespace perfkit::event
