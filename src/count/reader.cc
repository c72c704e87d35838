// Names of paths, and the estimate of a multiplexed count.
#include "perfkit/count.h"
#include "src/base/scale.h"

namespace perfkit {

std::string_view ReadPathName(ReadPath path) {
  switch (path) {
    case ReadPath::kUserPage: return "user page";
    case ReadPath::kRing: return "ring";
    case ReadPath::kThreadClock: return "thread clock";
    case ReadPath::kGroupRead: return "group read";
    case ReadPath::kUsage: return "getrusage";
    case ReadPath::kWrappedMalloc: return "wrapped malloc";
    case ReadPath::kThreadIo: return "thread's io file";
  }
  return "unknown";
}

std::optional<uint64_t> Count::scaled() const {
  if (!validity.counted()) return std::nullopt;
  // The thread was not on a counter because it ran on other cores, where the event means something else or nothing. So
  // its count here can't be scaled to include them.
  if (validity.has(Validity::kSomeCpus) && coverage() < 1) return std::nullopt;
  return base::Scale(value, time_enabled_ns, time_running_ns);
}

}  // namespace perfkit
