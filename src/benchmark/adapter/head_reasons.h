// The reasons for missing counts that the head of the report has given. A row refers to the head for a long one.
#pragma once

#include <string>
#include <string_view>

namespace perfkit::adapter {

// Both are thread-safe. `name`: the event or metric, as it was written.

// Notes that the head says that `name` is missing for `reason`.
void NoteHeadReason(std::string_view name, std::string_view reason);

// Returns `reason` as a row says it: in full if it is short, or if the head does not have it, as for events that a
// benchmark names itself. The head has room for remedies, and has them once.
std::string ReasonForRow(std::string_view name, const std::string& reason);

}  // namespace perfkit::adapter
