// The text between the slashes of "cpu/event=0x3c,umask=1/": names, some with values.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace perfkit::event {

struct Term {
  std::string_view name;
  std::optional<std::string_view> value;  // Without quotes.
};

// Splits `text`, which is a view into `whole` or into another text without a position. Errors: InvalidArgument for an
// empty term, a missing name or value, more terms than any event has, or a name that is written twice.
absl::StatusOr<std::vector<Term>> SplitTerms(std::string_view whole, std::string_view text);

// Returns the number in a term's value: decimal or 0x-hexadecimal. Errors: InvalidArgument with the term, also for
// negative numbers.
absl::StatusOr<uint64_t> TermNumber(std::string_view whole, const Term& term);

}  // namespace perfkit::event
