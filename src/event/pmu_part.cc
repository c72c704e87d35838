// Applies the terms of one event to the config words of one PMU (tools/perf/util/pmu.c: perf_pmu__check_alias,
// perf_pmu__config). Each term first gets a role by its name and value. Then the roles are applied in a fixed order
// (words, the named event, fields), so that the order of writing does not matter. The user's own fields come last, so
// they override those of the named event. Two events in one list of terms are refused: their bits would combine to a
// third one.
#include "src/event/pmu_part.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "src/event/event_table.h"
#include "src/event/generic.h"
#include "src/event/own_event.h"
#include "src/event/parse_error.h"
#include "src/event/suggest.h"

namespace perfkit::event {
namespace {

constexpr std::string_view kWords[kConfigWords] = {"config", "config1", "config2", "config3"};

// Terms of perf that say how samples are taken or shown; perfkit's samplers have options for them.
constexpr std::string_view kSamplingTerms[] = {
    "period",     "freq",       "branch_type",     "time",         "call-graph", "stack-size",
    "max-stack",  "nr",         "inherit",         "no-inherit",   "overwrite",  "percore",
    "aux-output", "aux-action", "aux-sample-size", "no-overwrite", "metric-id",  "driver-config"};

// Returns the index of the config word that a term names, or nullopt.
std::optional<size_t> WordIndex(std::string_view name) {
  const auto* const found = std::ranges::find(kWords, name);
  if (found == std::end(kWords)) return std::nullopt;
  return static_cast<size_t>(found - kWords);
}

}  // namespace

// Returns the role of a term by its name and by whether it has a value. It does not depend on the PMU's fields.
PmuPart::Role PmuPart::RoleOf(const Term& term) {
  if (WordIndex(term.name)) return Role::kWord;
  if (term.name == "name") return Role::kName;
  if (std::ranges::find(kSamplingTerms, term.name) != std::end(kSamplingTerms)) return Role::kSampling;
  return term.value ? Role::kField : Role::kAlone;
}

// Applies the terms role by role, so that their order does not matter: words, then the event, then fields.
absl::Status PmuPart::Apply(std::span<const Term> terms) {
  for (const Role role : {Role::kSampling, Role::kWord, Role::kName, Role::kAlone, Role::kField}) {
    for (const Term& term : terms) {
      if (RoleOf(term) != role) continue;
      absl::Status applied;
      switch (role) {
        case Role::kSampling:
          return WrongAt(
              whole_, term.name,
              absl::StrFormat("term '%s' says how samples are taken; that is an option of perfkit's sampler, "
                              "not a part of the event's name",
                              term.name));
        case Role::kWord: applied = ApplyWord(term); break;
        case Role::kName: applied = ApplyName(term); break;
        case Role::kAlone: applied = ApplyAlone(term); break;
        case Role::kField: applied = ApplyField(term); break;
      }
      if (!applied.ok()) return applied;
    }
  }
  // A generic event replaces the whole config word (part()), so fields beside it would be lost.
  if (generic_ != nullptr && terms.size() > (given_name_.empty() ? 1 : 2)) {
    return WrongAt(whole_, event_given_, absl::StrFormat("generic event '%s' takes no further terms", event_given_));
  }
  return CheckDemands(terms);
}

// perf's `name` renames the event in its output; here it becomes the EventConfig's name.
absl::Status PmuPart::ApplyName(const Term& term) {
  if (!term.value) return WrongAt(whole_, term.name, "term 'name' needs a value");
  given_name_ = *term.value;
  return absl::OkStatus();
}

// Sets a whole word, which is not checked against the formats.
absl::Status PmuPart::ApplyWord(const Term& term) {
  if (!term.value) return WrongAt(whole_, term.name, absl::StrFormat("term '%s' needs a value", term.name));
  const absl::StatusOr<uint64_t> number = TermNumber(whole_, term);
  if (!number.ok()) return number.status();
  words_[*WordIndex(term.name)] = *number;
  return absl::OkStatus();
}

// Writes a value into the bits of the PMU's format.
absl::Status PmuPart::ApplyField(const Term& term) {
  const absl::StatusOr<BitField> field = LoadFormat(pmu_, term.name);
  if (absl::IsNotFound(field.status())) return Unknown(term);
  if (!field.ok()) return ErrorAt(field.status().code(), whole_, term.name, std::string(field.status().message()));
  const absl::StatusOr<uint64_t> number = TermNumber(whole_, term);
  if (!number.ok()) return number.status();
  return Put(term, *field, *number);
}

// A term without a value is a named event, as in perf, or else a flag, or else a generic event or raw code.
absl::Status PmuPart::ApplyAlone(const Term& term) {
  const absl::StatusOr<NamedEvent> named = LoadNamedEvent(pmu_, term.name);
  if (named.ok()) {
    if (absl::Status taken = TakeEvent(term); !taken.ok()) return taken;
    scale_ = named->scale;
    unit_ = named->unit;
    return ApplyNamed(term, *named);
  }
  if (!absl::IsNotFound(named.status())) {
    return ErrorAt(named.status().code(), whole_, term.name, std::string(named.status().message()));
  }
  const absl::StatusOr<BitField> field = LoadFormat(pmu_, term.name);
  if (absl::IsNotFound(field.status())) return ApplyGeneric(term);
  if (!field.ok()) return ErrorAt(field.status().code(), whole_, term.name, std::string(field.status().message()));
  return PutFlag(term, *field);
}

// Two events in one would combine their bits into a third event.
absl::Status PmuPart::TakeEvent(const Term& term) {
  if (!event_given_.empty()) {
    return WrongAt(whole_, term.name,
                   absl::StrFormat("'%s' and '%s' are two events; write two", event_given_, Printable(term.name)));
  }
  event_given_ = term.name;
  return absl::OkStatus();
}

// Applies the terms of a sysfs file. The user did not write them, so errors point to the event's name and quote the
// file.
absl::Status PmuPart::ApplyNamed(const Term& term, const NamedEvent& named) {
  absl::Status status;
  const absl::StatusOr<std::vector<Term>> terms = SplitTerms(named.terms, named.terms);
  if (!terms.ok() || terms->empty()) {
    // Its message is not used: the error below quotes the file instead.
    status = absl::Status(absl::StatusCode::kFailedPrecondition, "");
  } else {
    for (const Term& inner : *terms) {
      if (status.ok()) status = ApplyNamedTerm(inner);
    }
  }
  if (status.ok()) return status;
  return ErrorAt(absl::StatusCode::kFailedPrecondition, whole_, term.name,
                 absl::StrFormat("%s/events/%s holds '%s', which is no event of this PMU", pmu_.folder, term.name,
                                 Printable(named.terms)));
}

// As for the user's terms, but ignores hints for samplers; "?" means that the user must give a value.
absl::Status PmuPart::ApplyNamedTerm(const Term& inner) {
  if (inner.value == "?") {
    demanded_.emplace_back(inner.name);
    return absl::OkStatus();
  }
  if (RoleOf(inner) == Role::kWord) return ApplyWord(inner);
  if (RoleOf(inner) == Role::kField) return ApplyField(inner);
  if (RoleOf(inner) != Role::kAlone) return absl::OkStatus();  // A hint for samplers, such as period=.
  const absl::StatusOr<BitField> field = LoadFormat(pmu_, inner.name);
  if (field.ok()) return PutFlag(inner, *field);
  const absl::StatusOr<NamedEvent> named = LoadNamedEvent(pmu_, inner.name);
  // A file may name another event of its PMU. The count ends files that name each other.
  if (!named.ok() || names_left_-- <= 0) return Unknown(inner);
  return ApplyNamed(inner, *named);
}

// Applies "cpu_core/cycles/": perf accepts generic names and raw codes on a core PMU, to choose the kind of core.
absl::Status PmuPart::ApplyGeneric(const Term& term) {
  if (const std::optional<uint64_t> raw = ParseRaw(term.name)) {
    if (absl::Status taken = TakeEvent(term); !taken.ok()) return taken;
    words_[0] = *raw;
    return absl::OkStatus();
  }
  const TableEvent* const known = pmu_.core ? FindTableEvent(term.name) : nullptr;
  if (known == nullptr || known->category == EventCategory::kSoftware) return Unknown(term);
  if (absl::Status taken = TakeEvent(term); !taken.ok()) return taken;
  generic_ = known;
  return absl::OkStatus();
}

// A term without a value means 1, which makes sense only for a field of one bit.
absl::Status PmuPart::PutFlag(const Term& term, const BitField& field) {
  if (field.width() == 1) return Put(term, field, 1);
  return WrongAt(whole_, term.name,
                 absl::StrFormat("term '%s' of PMU '%s' has %d bits and needs a value: '%s=0x..'", Printable(term.name),
                                 pmu_.name, field.width(), Printable(term.name)));
}

// The last one applied wins: the user's fields come after those of the named event.
absl::Status PmuPart::Put(const Term& term, const BitField& field, uint64_t value) {
  const std::optional<uint64_t> bits = Spread(field, value);
  if (!bits) {
    return WrongAt(whole_, term.name,
                   absl::StrFormat("0x%x does not fit into term '%s' of PMU '%s': it has %d bits, at most 0x%x", value,
                                   Printable(term.name), pmu_.name, field.width(), field.largest()));
  }
  uint64_t& word = words_[field.word];
  word = (word & ~field.mask) | *bits;
  return absl::OkStatus();
}

// "core=?" in a file means that the user must give a value.
absl::Status PmuPart::CheckDemands(std::span<const Term> terms) const {
  for (const std::string& demanded : demanded_) {
    const bool given = std::ranges::any_of(terms, [&](const Term& term) { return term.name == demanded; });
    if (given) continue;
    return WrongAt(whole_, event_given_,
                   absl::StrFormat("event '%s' of PMU '%s' needs a value for term '%s': add '%s=..'", event_given_,
                                   pmu_.name, Printable(demanded), Printable(demanded)));
  }
  return absl::OkStatus();
}

// A term with a value can only be a format; one without may also be an event.
absl::Status PmuPart::Unknown(const Term& term) const {
  std::vector<std::string> known = FormatNames(pmu_);
  if (!term.value) {
    for (std::string& name : EventNames(pmu_)) known.push_back(std::move(name));
  }
  return WrongAt(whole_, term.name,
                 absl::StrFormat("PMU '%s' has no %s '%s'%s", pmu_.name, term.value ? "term" : "event or term",
                                 Printable(term.name), DidYouMeanOr(term.name, known, "it has")));
}

// If there are several core PMUs, the part has the CPUs of its PMU, and a generic config has the PMU's number.
EventConfig::Part PmuPart::part() const {
  EventConfig::Part part;
  part.type = generic_ != nullptr ? generic_->type.type : pmu_.type;
  part.config = generic_ != nullptr ? generic_->type.config : words_[0];
  if (generic_ != nullptr && hybrid_) {
    part.config |= uint64_t{pmu_.type} << kPmuTypeShift;
    FillOwnEvent(pmu_, generic_->type.type, generic_->type.config, part);
  }
  part.config1 = words_[1];
  part.config2 = words_[2];
  part.config3 = words_[3];
  part.pmu = pmu_.name;
  // The only core PMU has all CPUs, so there is no restriction.
  if (hybrid_ || !pmu_.core) part.only_cpus = pmu_.cpus;
  return part;
}

}  // namespace perfkit::event
