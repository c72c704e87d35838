// The probes of ProbeCapabilities: each tries one thing and returns a Finding.
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "perfkit/capabilities.h"
#include "src/doctor/workload.h"
#include "src/sys/perf_error.h"
#include "src/sys/rights.h"

namespace perfkit::doctor {

// The remedy of all rows but the first if there is no perf_event_open.
inline constexpr char kSeePerf[] = "See performance events.";

// What is known before the first probe, and what all probes may use.
struct Context {
  sys::Rights rights;
  std::string proc = "/proc";
  std::string sysfs = "/sys";
  Workload workload;
  bool has_perf = true;  // There is a perf_event_open, if only to refuse. Set by the first probe.
  bool has_pmu = false;  // Set by the probe of the PMU; later probes need it.
};

// The result of one probe.
struct Finding {
  CapabilityState state = CapabilityState::kMissing;
  absl::Status status;  // If missing: the system's answer.
  std::string found;    // If present: what there is; if untried: why.
  std::string cause;    // If missing: why; "" means that `status` has the cause.
  std::string remedy;   // If missing: the remedy here; "" means the capability's own.

  static Finding Present(std::string what) {
    return {CapabilityState::kPresent, absl::OkStatus(), std::move(what), {}, {}};
  }
  static Finding Untried(std::string why) {
    return {CapabilityState::kUntried, absl::OkStatus(), std::move(why), {}, {}};
  }
  static Finding Missing(absl::Status status, std::string cause = {}) {
    return {CapabilityState::kMissing, std::move(status), {}, std::move(cause), {}};
  }
  // Missing because what was to be tried could not be looked up: its own remedy is no use then.
  static Finding Unnamed(absl::Status status) {
    std::string remedy = sys::RemedyOf(status);
    return {CapabilityState::kMissing, std::move(status), {}, {}, std::move(remedy)};
  }
};

// The finding of probes that are of no use in a kernel or sandbox without perf_event_open.
inline Finding NeedsPerf() {
  Finding finding = Finding::Missing(absl::UnavailableError("this kernel or sandbox has no perf_event_open"));
  finding.remedy = kSeePerf;
  return finding;
}

// The finding of probes that need hardware events on a machine without a PMU.
inline Finding NeedsPmu(const Context& context) {
  if (!context.has_perf) return NeedsPerf();
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

// Events at addresses in code and memory: address_probes.cc.
Finding ProbeTracepoints(Context& context);
Finding ProbeUprobes(Context& context);
Finding ProbeBreakpoints(Context& context);

// Rings, limits and capabilities of newer kernels: ring_probes.cc.
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
