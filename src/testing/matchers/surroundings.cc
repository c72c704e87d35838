// Environment variables, the host's name, and verdicts about missing costs.
#include "src/testing/matchers/surroundings.h"

#include <algorithm>
#include <cstdlib>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_format.h"
#include "src/base/text.h"
#include "src/measure/services.h"

namespace perfkit::matchers {

std::string ThisMachine() {
  if (const char* const name = std::getenv("PERFKIT_MACHINE")) return name;
  return detail::HostName();
}

namespace {

// Calls `visit` with each word of PERFKIT_REQUIRE, which are separated by commas.
void ForEachRequired(absl::FunctionRef<void(std::string_view word)> visit) {
  const char* const value = std::getenv("PERFKIT_REQUIRE");
  base::ForEachPiece(value == nullptr ? "" : value, ',', [&](std::string_view piece) {
    if (const std::string_view word = base::Trim(piece); !word.empty()) visit(word);
  });
}

// Whole names are compared, so that "cycles" does not require "ref-cycles".
bool IsRequired(std::string_view event, std::span<const std::string> also) {
  bool required = false;
  ForEachRequired([&](std::string_view word) {
    required |= word == "all" || word == event ||
                detail::CanonicalEventName(word) == detail::CanonicalEventName(event) ||
                std::ranges::find(also, word) != also.end();
  });
  return required;
}

// Returns the text about `word`, which is no event, in a remark on `event`.
std::string TextOfWrong(std::string_view word, std::string_view event) {
  for (const std::string_view meant : {std::string_view("all"), event}) {
    if (detail::IsMisprintOf(word, meant)) return absl::StrFormat("\"%s\". Remedy: write %s", word, meant);
  }
  return absl::StrFormat("\"%s\", which is no event. Remedy: name events as instructions,cycles or write all", word);
}

// Returns a remark on the first word of PERFKIT_REQUIRE that is the name of no event; "" if there is none.
std::string WrongWord(std::string_view event) {
  std::string remark;
  ForEachRequired([&](std::string_view word) {
    if (!remark.empty() || detail::IsEventName(word)) return;
    remark = absl::StrFormat(" (and PERFKIT_REQUIRE has %s)", TextOfWrong(word, event));
  });
  return remark;
}

}  // namespace

// A word that is the name of no event would let the check pass that it asks for, whichever that is.
Verdict Unmeasurable(const EventType& event, const std::string& reason, std::span<const std::string> also) {
  const std::string remark =
      IsRequired(event.name, also) ? " (and PERFKIT_REQUIRE asks for it)" : WrongWord(event.name);
  return {Outcome::kUnmeasurable, absl::StrFormat("%s: %s%s", event.name, reason, remark), !remark.empty()};
}

const Cost* FindMeasured(const Measurement& measurement, const EventType& event, Verdict& why_not,
                         std::span<const std::string> also) {
  const Cost* const cost = measurement.Find(event);
  if (cost == nullptr) {
    why_not = {Outcome::kFail,
               absl::StrFormat("%s was not measured: add it to the events of the measurement", event.name)};
    return nullptr;
  }
  if (cost->measured()) return cost;
  why_not = Unmeasurable(event, cost->unmeasurable, also);
  return nullptr;
}

}  // namespace perfkit::matchers
