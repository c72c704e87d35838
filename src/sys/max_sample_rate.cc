// Reads the highest frequency of samples, and says how it is raised.
#include "src/sys/max_sample_rate.h"

#include "absl/strings/str_format.h"
#include "src/base/number.h"
#include "src/base/text.h"
#include "src/sys/files.h"

namespace perfkit::sys {
namespace {

std::optional<uint64_t> Setting(const std::string& proc, const char* name) {
  const absl::StatusOr<std::string> text = ReadFile(absl::StrFormat("%s/sys/kernel/%s", proc, name));
  return text.ok() ? base::ParseNumber<uint64_t>(base::Trim(*text)) : std::nullopt;
}

}  // namespace

std::optional<uint64_t> MaxSampleRate(const std::string& proc) { return Setting(proc, "perf_event_max_sample_rate"); }

// kernel/events/core.c, perf_event_max_sample_rate_handler: refused while the time for samples is not limited.
std::string RaiseMaxSampleRate(const std::string& proc) {
  std::string remedy = "raise kernel.perf_event_max_sample_rate (sysctl, as root)";
  const std::optional<uint64_t> percent = Setting(proc, "perf_cpu_time_max_percent");
  if (percent == 0 || percent == 100) {
    absl::StrAppendFormat(&remedy,
                          ", after sysctl kernel.perf_cpu_time_max_percent=25 (it is %d now, and at 0 and 100 the "
                          "kernel refuses to change the rate)",
                          *percent);
  }
  return remedy;
}

}  // namespace perfkit::sys
