// Composes the names of the examples. Addresses and offsets are those of this process, so each one can be opened and
// counted as it is.
#include "src/doctor/examples.h"

#include <cstdint>
#include <optional>

#include "absl/strings/str_format.h"
#include "src/doctor/own_code.h"
#include "src/doctor/workload.h"

namespace perfkit::doctor {
namespace {

// The code of "instructions retired" on each architecture: Intel SDM 3B, architectural events, and AMD PMCx0C0 agree;
// Arm ARM D13, event 0x08, INST_RETIRED.
#if defined(__x86_64__) || defined(__i386__)
constexpr std::string_view kRawInstructions = "r00c0";
#elif defined(__aarch64__)
constexpr std::string_view kRawInstructions = "r0008";
#else
constexpr std::string_view kRawInstructions = "";
#endif

}  // namespace

std::vector<Example> ExamplesHere(const Workload& workload, const std::string& proc) {
  std::vector<Example> examples;
  if (!kRawInstructions.empty()) examples.push_back({EventCategory::kRaw, "rNNN", std::string(kRawInstructions)});
  examples.push_back({EventCategory::kBreakpoint, "mem:ADDRESS/LENGTH:rwx",
                      absl::StrFormat("mem:0x%x/4:w", reinterpret_cast<uintptr_t>(workload.watched_word()))});
  if (const std::optional<FileLocation> location = FileLocationOf(Workload::ProbedFunction(), proc)) {
    examples.push_back({EventCategory::kUprobe, "uprobe:FILE:SYMBOL or FILE+OFFSET",
                        absl::StrFormat("uprobe:%s+0x%x", location->path, location->offset)});
  }
  return examples;
}

}  // namespace perfkit::doctor
