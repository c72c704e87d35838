// getrusage(RUSAGE_THREAD) and CLOCK_THREAD_CPUTIME_ID: the first has CPU time in microseconds only, the second in
// nanoseconds.
#include "src/count/usage.h"

#include <sys/resource.h>
#include <time.h>

#include "src/sys/kernel.h"
#include "src/sys/perf_abi.h"

#ifndef RUSAGE_THREAD
#define RUSAGE_THREAD 1
#endif

namespace perfkit::count {

std::optional<UsageField> UsageFieldFor(uint64_t software_config) {
  switch (software_config) {
    case sys::kSwTaskClock: return UsageField::kTaskClock;
    case sys::kSwPageFaults: return UsageField::kPageFaults;
    case sys::kSwPageFaultsMin: return UsageField::kMinorFaults;
    case sys::kSwPageFaultsMaj: return UsageField::kMajorFaults;
    case sys::kSwContextSwitches: return UsageField::kContextSwitches;
    default: return std::nullopt;
  }
}

bool Usage::Read(UsageFields fields) noexcept {
  if ((fields & BitOf(UsageField::kTaskClock)) != 0) {
    timespec clock{};
    if (sys::kernel().clock_gettime(CLOCK_THREAD_CPUTIME_ID, &clock) != 0) return false;
    values_[static_cast<int>(UsageField::kTaskClock)] =
        static_cast<uint64_t>(clock.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(clock.tv_nsec);
  }
  if ((fields & ~BitOf(UsageField::kTaskClock)) == 0) return true;
  rusage usage{};
  if (sys::kernel().getrusage(RUSAGE_THREAD, &usage) != 0) return false;
  const auto minor = static_cast<uint64_t>(usage.ru_minflt), major = static_cast<uint64_t>(usage.ru_majflt);
  values_[static_cast<int>(UsageField::kPageFaults)] = minor + major;
  values_[static_cast<int>(UsageField::kMinorFaults)] = minor;
  values_[static_cast<int>(UsageField::kMajorFaults)] = major;
  values_[static_cast<int>(UsageField::kContextSwitches)] = static_cast<uint64_t>(usage.ru_nvcsw + usage.ru_nivcsw);
  return true;
}

}  // namespace perfkit::count
