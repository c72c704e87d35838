// System services for the matchers. The matchers are a library of their own, which sees only exported names of a shared
// core; so these are in perfkit::detail.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace perfkit::detail {

// Returns the contents of `path`. Errors: NotFound if there is no such file; FailedPrecondition if it is not a regular
// file; else by errno.
absl::StatusOr<std::string> ReadTextFile(const std::string& path);

// Replaces the text of `path` (created if needed) by the result of `edit`, under a lock among all users of this
// function, also in other processes. Writes nothing if `edit` fails. Errors: also FailedPrecondition if `path` is not a
// regular file.
absl::Status EditTextFile(const std::string& path,
                          const std::function<absl::StatusOr<std::string>(const std::string& text)>& edit);

// Returns the machine's name; "" if it has none.
std::string HostName();

// Returns the canonical name of a generic event: "cycles" for "cpu-cycles". Returns `name` itself for all others.
std::string_view CanonicalEventName(std::string_view name);

// Returns true if `name` is that of an event, without modifiers, on this machine or another.
bool IsEventName(std::string_view name);

// Returns true if only the case of letters, a "_" for a "-", or one letter too many or too few makes the difference.
bool IsMisprintOf(std::string_view typed, std::string_view name);

}  // namespace perfkit::detail
