// What an errno of a perf call means, why it came here, and what to do about it: one table.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "src/sys/rights.h"

namespace perfkit::sys {

enum class PerfCall { kOpen, kMapRing, kIoctl, kRead };

// A Status that names what was asked (`asked`, in the user's words: "event 'cycles:k' on thread 12"), what the system
// said, the cause here (quoting the paranoid level or the limit that is in force) and the remedy.
// Codes: PermissionDenied for rights, Unavailable for what this machine or kernel has not, ResourceExhausted for
// limits, NotFound for tasks that are gone, InvalidArgument for combinations that the kernel refuses, else Internal.
absl::Status PerfError(PerfCall call, int error, std::string_view asked, const Rights& rights = ReadRights());

// What was found out about a refusal, for those who know more than its errno (src/open/explain.h).
struct Explanation {
  absl::StatusCode code;
  std::string cause;
  std::string remedy;  // without a full stop
};
absl::Status PerfError(PerfCall call, int error, std::string_view asked, const Explanation& explanation,
                       const Rights& rights);

// The errno that such a Status quotes; 0 when it quotes none.
int ErrnoOf(const absl::Status& status);

// The remedy of a message of the form "asked: cause. Remedy: ...", with its full stop; "" when it has none.
std::string RemedyOf(const absl::Status& status);

// The cause in a few words, for tables: what a message of the form "asked: cause. Remedy: ..." says in its middle,
// without what the system said. "" for OK.
std::string CauseOf(const absl::Status& status);

}  // namespace perfkit::sys
