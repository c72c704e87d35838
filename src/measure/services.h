// What the matchers need of the system. They are a library of their own, which sees of a shared core only what is
// exported: hence perfkit::detail.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace perfkit::detail {

// The whole of `path`; NotFound when there is no such file.
absl::StatusOr<std::string> ReadTextFile(const std::string& path);

// Replaces the text of `path` (made if need be) by what `edit` makes of it, under a lock that all users of this
// function respect, in other processes too. Writes nothing when `edit` fails.
absl::Status EditTextFile(const std::string& path,
                          const std::function<absl::StatusOr<std::string>(const std::string& text)>& edit);

// The machine's name; "" when nobody says it.
std::string HostName();

}  // namespace perfkit::detail
