// A write to a watched word, by the kernel's counter.
#include "src/open/breakpoint_check.h"

#include <cstdint>

#include "absl/strings/str_format.h"
#include "src/sys/fd.h"
#include "src/sys/kernel.h"
#include "src/sys/perf_abi.h"

namespace perfkit::open {
namespace {

bool IsUncounted() {
  volatile uint32_t word = 0;
  sys::PerfEventAttr attr{};
  attr.type = sys::kTypeBreakpoint;
  attr.bp_type = sys::kBreakWrite;
  attr.config1 = reinterpret_cast<uintptr_t>(&word);  // bp_addr
  attr.config2 = sizeof(word);                        // bp_len
  attr.exclude_kernel = attr.exclude_hv = 1;
  attr.size = sys::AttrSize(attr);
  const sys::OwnedFd fd(sys::kernel().perf_event_open(&attr, 0, -1, -1, sys::kOpenFdCloexec));
  if (!fd) return false;
  word = 1;
  uint64_t count = 0;
  return sys::kernel().read(fd.get(), &count, sizeof(count)) == sizeof(count) && count == 0;
}

}  // namespace

absl::Status CheckBreakpoints(std::string_view asked) {
  constexpr int kTries = 3;  // some machines lose them only while another process is single-stepped
  for (int i = 0; i < kTries; ++i) {
    if (!IsUncounted()) return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrFormat(
      "%s: the kernel opened it, but this machine does not count breakpoints: it has counted none of the writes to a "
      "watched word. Remedy: let the hypervisor give its guests debug registers, or run on hardware.",
      asked));
}

}  // namespace perfkit::open
