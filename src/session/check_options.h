// Finds options of a session that cannot work on any machine.
#pragma once

#include "absl/status/status.h"
#include "perfkit/session.h"

namespace perfkit::session {

// Errors: InvalidArgument with a remedy, for a value out of range, and for options that contradict each other.
absl::Status CheckOptions(const SessionOptions& options);

}  // namespace perfkit::session
