// Explains an errno of a perf call: its meaning, its cause on this machine, and a remedy. One table has all.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "src/sys/rights.h"

namespace perfkit::sys {

enum class PerfCall { kOpen, kMapRing, kIoctl, kRead };

// Returns a Status that names the request (`asked`, in the user's words: "event 'cycles:k' on thread 12"), the system's
// answer, the cause here (with the paranoid level or the limit in force) and the remedy. Codes: PermissionDenied for
// rights, Unavailable for what this machine or kernel lacks, ResourceExhausted for limits, NotFound for tasks that have
// ended, InvalidArgument for combinations that the kernel refuses, else Internal.
absl::Status PerfError(PerfCall call, int error, std::string_view asked, const Rights& rights = ReadRights());

// The findings about a refusal, for callers that know more than its errno (src/open/explain.h).
struct Explanation {
  absl::StatusCode code;
  std::string cause;
  std::string remedy;  // Without a full stop.
};
absl::Status PerfError(PerfCall call, int error, std::string_view asked, const Explanation& explanation,
                       const Rights& rights);
// Returns the usual cause and remedy of `error`; nullopt if the table has none.
std::optional<Explanation> UsualExplanation(PerfCall call, int error);

// Returns the errno that such a Status quotes; 0 if it quotes none.
int ErrnoOf(const absl::Status& status);

// Returns the remedy of a message of the form "asked: cause. Remedy: ...", with its full stop; "" if it has none.
std::string RemedyOf(const absl::Status& status);

// Returns the cause in a few words, for tables: the middle of a message of the form "asked: cause. Remedy: ...",
// without the system's answer. "" for OK.
std::string CauseOf(const absl::Status& status);

}  // namespace perfkit::sys
