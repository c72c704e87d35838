// Turns the terms of one event into the config words of one PMU.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "perfkit/event.h"
#include "src/event/event_table.h"
#include "src/event/pmu.h"
#include "src/event/term_list.h"

namespace perfkit::event {

// The terms of one event on one PMU:
//   config=, config1=, …      a whole word
//   <format>=value, <format>  a field; alone it means 1, and must be one bit wide
//   <named event>             the terms of the file events/<name>, with its scale and unit; at most one
//   <generic event>, rNNN     the same as without a PMU, on this PMU
//   name=text                 the name of the event
// Words come first, then the named event, then fields: a field that is written overrides the named event's.
class PmuPart {
 public:
  // `whole` and `pmu` must outlive this. `hybrid`: there are several core PMUs, so that a generic event needs a PMU's
  // number.
  PmuPart(std::string_view whole, const Pmu& pmu, bool hybrid) : whole_(whole), pmu_(pmu), hybrid_(hybrid) {}

  // Applies the terms that the user wrote. Call it once.
  absl::Status Apply(std::span<const Term> terms);

  EventConfig::Part part() const;
  double scale() const { return scale_; }
  const std::string& unit() const { return unit_; }
  std::string_view given_name() const { return given_name_; }  // "" if there was none.

 private:
  enum class Role { kWord, kName, kField, kSampling, kAlone };

  static Role RoleOf(const Term& term);
  absl::Status ApplyName(const Term& term);
  absl::Status ApplyWord(const Term& term);
  absl::Status ApplyField(const Term& term);
  absl::Status ApplyAlone(const Term& term);
  absl::Status ApplyNamed(const Term& term, const NamedEvent& named);
  absl::Status ApplyNamedTerm(const Term& inner);
  absl::Status TakeEvent(const Term& term);
  absl::Status ApplyGeneric(const Term& term);
  absl::Status PutFlag(const Term& term, const BitField& field);
  absl::Status Put(const Term& term, const BitField& field, uint64_t value);
  absl::Status CheckDemands(std::span<const Term> terms) const;
  absl::Status Unknown(const Term& term) const;

  std::string_view whole_;
  const Pmu& pmu_;
  bool hybrid_;
  std::array<uint64_t, kConfigWords> words_{};
  const TableEvent* generic_ = nullptr;
  std::string_view event_given_;       // The named or generic event that was given.
  std::vector<std::string> demanded_;  // Terms that the named event leaves to the user ("core=?").
  int names_left_ = 8;                 // Remaining bound of files that named events may name in turn.
  std::string_view given_name_;
  double scale_ = 1.0;
  std::string unit_;
};

}  // namespace perfkit::event
