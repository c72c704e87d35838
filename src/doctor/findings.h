// The probes of ProbeCapabilities: each tries one thing and says what it found.
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "perfkit/capabilities.h"
#include "src/doctor/workload.h"
#include "src/sys/rights.h"

namespace perfkit::doctor {

// What is known before the first probe, and what each may use.
struct Context {
  sys::Rights rights;
  std::string proc = "/proc";
  std::string sysfs = "/sys";
  Workload workload;
  bool has_pmu = false;  // set by the probe that finds out; later probes need it
};

// One probe's outcome.
struct Finding {
  CapabilityState state = CapabilityState::kMissing;
  absl::Status status;  // missing: what the system said
  std::string found;    // there: what exactly; untried: why
  std::string cause;    // missing: why here; "" to take it out of `status`
  std::string remedy;   // missing: what helps here; "" for the capability's own

  static Finding Present(std::string what) {
    return {CapabilityState::kPresent, absl::OkStatus(), std::move(what), {}, {}};
  }
  static Finding Untried(std::string why) {
    return {CapabilityState::kUntried, absl::OkStatus(), std::move(why), {}, {}};
  }
  static Finding Missing(absl::Status status, std::string cause = {}) {
    return {CapabilityState::kMissing, std::move(status), {}, std::move(cause), {}};
  }
};

// What all that counts hardware events is missing on a machine without a PMU.
inline Finding NeedsPmu() {
  Finding finding = Finding::Missing(absl::UnavailableError("there are no hardware counters"));
  finding.remedy = "See hardware counters.";
  return finding;
}

// Counting and its rights: counting_probes.cc.
Finding ProbePerf(Context& context);
Finding ProbePmu(Context& context);
Finding ProbeUserReads(Context& context);
Finding ProbeKernelCounting(Context& context);
Finding ProbeCpuWide(Context& context);
Finding ProbeOtherUsers(Context& context);

// Addresses in code and memory: address_probes.cc.
Finding ProbeTracepoints(Context& context);
Finding ProbeUprobes(Context& context);
Finding ProbeBreakpoints(Context& context);

// Rings, limits and what newer kernels can: ring_probes.cc.
Finding ProbeSwitchRecords(Context& context);
Finding ProbeRingMemory(Context& context);
Finding ProbeDescriptors(Context& context);
Finding ProbeSigtrap(Context& context);
Finding ProbeInheritThread(Context& context);
Finding ProbeFormatLost(Context& context);
Finding ProbePreciseSampling(Context& context);
Finding ProbeBranchStacks(Context& context);
Finding ProbeRseq(Context& context);

}  // namespace perfkit::doctor
