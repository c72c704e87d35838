// Reads the depth of the kernel's call chains.
#include "src/sys/max_chain.h"

#include "src/base/number.h"
#include "src/base/text.h"
#include "src/sys/files.h"

namespace perfkit::sys {

uint32_t MaxCallChain(const std::string& proc) {
  constexpr uint32_t kDefault = 127;  // PERF_MAX_STACK_DEPTH
  const absl::StatusOr<std::string> text = ReadFile(proc + "/sys/kernel/perf_event_max_stack");
  return text.ok() ? base::ParseNumber<uint32_t>(base::Trim(*text)).value_or(kDefault) : kDefault;
}

}  // namespace perfkit::sys
