// What stands between the slashes of "cpu/event=0x3c,umask=1/": names, some with values.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace perfkit::event {

struct Term {
  std::string_view name;
  std::optional<std::string_view> value;  // without quotes
};

// Splits `text`. InvalidArgument, with `text` a view into `whole` or one that has no place in it: an empty term, a
// missing name or value, more terms than any event has, one name twice.
absl::StatusOr<std::vector<Term>> SplitTerms(std::string_view whole, std::string_view text);

// The number in a term's value: decimal or 0x-hexadecimal. InvalidArgument names the term; negative ones too.
absl::StatusOr<uint64_t> TermNumber(std::string_view whole, const Term& term);

}  // namespace perfkit::event
