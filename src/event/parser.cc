// Parses one event: recognises its kind and calls the parser of that kind.
//
//   uprobe:… uretprobe:… mem:…      by their prefix; their slashes have another meaning
//   pmu/terms/modifiers             by a slash
//   group:name:modifiers            by a colon, unless the text before it is an event by itself
//   name:modifiers                  the generic table, rNNN, type:config, then any PMU's named event
#include "src/event/parser.h"

#include <optional>

#include "absl/strings/str_format.h"
#include "src/base/number.h"
#include "src/base/text.h"
#include "src/event/breakpoint.h"
#include "src/event/event_table.h"
#include "src/event/generic.h"
#include "src/event/parse_error.h"
#include "src/event/pmu_event.h"
#include "src/event/probe.h"
#include "src/event/split.h"
#include "src/event/suggest.h"
#include "src/event/term_list.h"
#include "src/event/tracepoint.h"

namespace perfkit::event {
namespace {

constexpr size_t kLongestEvent = 4096;

using MaybeText = std::optional<std::string_view>;

// The arguments of all parsers below. `modifiers` is a result: the text after the colon or slash that ends the event.
struct Parsing {
  std::string_view whole;
  const EventRoots& roots;
  EventConfig& config;
  MaybeText& modifiers;
};

// Parses a word that is an event by itself. Returns false if it is none.
absl::StatusOr<bool> FillWord(const Parsing& at, std::string_view word) {
  if (const TableEvent* const known = FindTableEvent(word)) {
    FillTableEvent(*known, at.roots, at.config);
    return true;
  }
  if (const std::optional<uint64_t> raw = ParseRaw(word)) {
    FillRaw(*raw, at.roots, at.config);
    return true;
  }
  return FillNamedEvent(at.whole, word, at.roots, at.config);
}

// Parses "1:2", as perf does: any type and config.
bool FillNumbers(const Parsing& at, std::string_view type_text, std::string_view rest) {
  const auto [config_text, tail] = base::Cut(rest, ':');
  const std::optional<uint64_t> type = base::ParsePrefixed(type_text), config = base::ParsePrefixed(config_text);
  if (!type || *type > UINT32_MAX || !config) return false;
  if (config_text.size() < rest.size()) at.modifiers = tail;
  FillType({static_cast<uint32_t>(*type), *config, 0, 0, ""}, at.roots, at.config);
  return true;
}

// Parses "name:modifiers", "type:config:modifiers" or "group:name:modifiers". The first word decides, because the
// letters of modifiers could also be a name.
absl::Status FillColons(const Parsing& at, std::string_view first, std::string_view rest) {
  const absl::StatusOr<bool> is_word = FillWord(at, first);
  if (!is_word.ok()) return is_word.status();
  if (*is_word) {
    at.modifiers = rest;
    return absl::OkStatus();
  }
  if (FillNumbers(at, first, rest)) return absl::OkStatus();
  // "cylces:u" is more likely a mistyped event than a tracepoint `u`, unless there is a group of that name.
  if (first.empty() || rest.empty() || (LooksLikeModifiers(rest) && !IsTracepointGroup(first, at.roots))) {
    return UnknownEvent(at.whole, first, at.roots);
  }
  const auto [name, tail] = base::Cut(rest, ':');
  if (name.size() < rest.size()) at.modifiers = tail;
  return FillTracepoint(at.whole, first, name, at.roots, at.config);
}

// Parses "cycles/name=work/". perf permits several terms for generic events; only `name` matters for counting.
absl::Status FillRenamed(const Parsing& at, std::string_view terms_text) {
  const absl::StatusOr<std::vector<Term>> terms = SplitTerms(at.whole, terms_text);
  if (!terms.ok()) return terms.status();
  for (const Term& term : *terms) {
    if (term.name != "name" || !term.value) {
      return WrongAt(at.whole, term.name, "a generic event takes no terms but 'name=text'");
    }
    at.config.name = Printable(*term.value);
  }
  return absl::OkStatus();
}

// A generic event's name has priority over a PMU's: no PMU has the name of one.
absl::Status FillSlashes(const Parsing& at, const PmuText& text) {
  at.modifiers = text.modifiers;
  if (const TableEvent* const known = FindTableEvent(text.pmu)) {
    FillTableEvent(*known, at.roots, at.config);
    return FillRenamed(at, text.terms);
  }
  return FillPmuEvent(at.whole, text.pmu, text.terms, at.roots, at.config);
}

// In the order of the picture above.
absl::Status Fill(const Parsing& at) {
  const std::string_view text = at.whole;
  if (text.starts_with(kEntryProbePrefix) || text.starts_with(kReturnProbePrefix)) {
    return FillProbe(text, text, at.roots, at.config, at.modifiers);
  }
  if (text.starts_with(kBreakpointPrefix)) {
    return FillBreakpoint(text, text.substr(kBreakpointPrefix.size()), at.config, at.modifiers);
  }
  const absl::StatusOr<std::optional<PmuText>> pmu = SplitPmuText(text);
  if (!pmu.ok()) return pmu.status();
  if (*pmu) return FillSlashes(at, **pmu);
  const size_t comma = text.find(',');
  if (comma != std::string_view::npos) {
    return WrongAt(text, text.substr(comma),
                   "',' separates events, and one event was asked for; ParseEventList takes several");
  }
  const size_t colon = text.find(':');
  if (colon != std::string_view::npos) return FillColons(at, text.substr(0, colon), text.substr(colon + 1));
  const absl::StatusOr<bool> is_word = FillWord(at, text);
  if (!is_word.ok()) return is_word.status();
  return *is_word ? absl::OkStatus() : UnknownEvent(text, text, at.roots);
}

// Refuses text that is never an event, so that the parsers need not.
absl::Status CheckText(std::string_view text) {
  if (text.size() > kLongestEvent) {
    return WrongAt(text, text, absl::StrFormat("longer than any event (%d characters)", text.size()));
  }
  const size_t brace = text.find_first_of("{}");
  if (brace != std::string_view::npos) {
    return WrongAt(text, text.substr(brace),
                   "braces make a group, and one event was asked for; ParseEventList takes groups");
  }
  const size_t odd = text.find('\0');
  if (odd != std::string_view::npos) return WrongAt(text, text.substr(odd), "a NUL byte");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<EventConfig> ParseOne(std::string_view text, const Modifiers& group, const EventRoots& roots) {
  text = base::Trim(text);
  if (absl::Status checked = CheckText(text); !checked.ok()) return checked;
  EventConfig config;
  config.name = text;
  MaybeText letters;
  if (absl::Status filled = Fill({text, roots, config, letters}); !filled.ok()) return filled;
  Modifiers modifiers = group;
  if (letters) {
    if (absl::Status added = AddModifiers(text, *letters, modifiers); !added.ok()) return added;
  }
  modifiers.ApplyTo(config);
  return config;
}

}  // namespace perfkit::event

namespace perfkit {

absl::StatusOr<EventConfig> ParseEvent(std::string_view text, const EventRoots& roots) {
  return event::ParseOne(text, {}, roots);
}

}  // namespace perfkit
