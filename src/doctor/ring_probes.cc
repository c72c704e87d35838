// Probes of rings and their uses, of limits, and of capabilities of newer kernels. A capability is probed by opening an
// event that asks for it: version numbers say little, since distributions backport and sandboxes take away.
#include <errno.h>
#include <sys/resource.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/event_type.h"
#include "perfkit/format.h"
#include "src/count/switch_log.h"
#include "src/doctor/findings.h"
#include "src/doctor/try_open.h"
#include "src/open/live_ring.h"
#include "src/sys/files.h"
#include "src/sys/perf_error.h"
#include "src/sys/rseq.h"

namespace perfkit::doctor {
namespace {

// Judges a capability that came with a later kernel: an older one answers EINVAL to an unknown bit.
Finding SinceKernel(absl::Status status, std::string_view version, std::string_view found) {
  if (status.ok()) return Finding::Present(std::string(found));
  // Unavailable: TryToOpen found that the kernel accepted the event only without the bit.
  // ENOSYS: there is no perf_event_open at all, whatever the kernel's version.
  const bool unknown =
      (absl::IsInvalidArgument(status) || absl::IsUnavailable(status)) && sys::ErrnoOf(status) != ENOSYS;
  return Finding::Missing(
      std::move(status),
      unknown ? absl::StrFormat("this kernel does not know it: it came with Linux %s", version) : "");
}

// A sampled event, since precision and branch stacks belong to samples. It is never enabled: opening it is the answer.
sys::PerfEventAttr Cycles() {
  sys::PerfEventAttr attr{};
  attr.type = event::kCycles.type;
  attr.config = event::kCycles.config;
  attr.sample_period_or_freq = 1'000'000;
  attr.disabled = attr.exclude_kernel = attr.exclude_hv = 1;
  return attr;
}

}  // namespace

Finding ProbeSwitchRecords(Context& context) {
  const absl::StatusOr<open::LiveRing> ring = count::OpenSwitchRing(false, context.rights);
  if (!ring.ok()) return Finding::Missing(ring.status());
  const uint64_t before = ring->head();
  context.workload.Run();
  // The ring overwrites and no reader advances: its head alone counts the records.
  const uint64_t switches = (ring->head() - before) >> count::kBareSwitchShift;
  if (switches > 0) return Finding::Present(absl::StrFormat("%d of the probe's own", switches));
  return Finding::Missing(absl::UnavailableError("the event opens, but a sleep left no record"),
                          "a sleep left no record in the ring");
}

// Opens rings of falling size and holds them all: the sizes that succeed add up to the available memory.
Finding ProbeRingMemory(Context& context) {
  constexpr uint32_t kLargestPages = 1 << 10;
  constexpr size_t kMaxPages = 1 << 12;
  open::OpenRequest request;
  request.attr = SoftwareAttr(sys::kSwDummy);
  request.asked = "dummy:u on this thread";
  std::vector<open::LiveRing> rings;
  size_t pages = 0;
  absl::Status last;
  bool ran_out = false;
  for (uint32_t data_pages = kLargestPages; data_pages > 0 && pages < kMaxPages && !ran_out;) {
    absl::StatusOr<open::LiveRing> ring = open::LiveRing::Open(request, data_pages, context.rights);
    if (ring.ok()) {
      rings.push_back(*std::move(ring));
      pages += data_pages + 1;
    } else {
      last = ring.status();
      ran_out = LacksDescriptor(last);
      // Data pages are a power of two; the user page of each ring is accounted, too.
      data_pages /= 2;
    }
  }
  if (pages == 0) return Finding::Missing(std::move(last));
  const char* const more = ran_out ? "at least " : pages < kMaxPages ? "" : "more than ";
  return Finding::Present(absl::StrFormat("%s%s KiB: %s rings of the smallest size (2 pages)%s", more,
                                          FormatNumber(pages * sys::PageSize() / 1024), FormatNumber(pages / 2),
                                          ran_out ? "; descriptors ran out" : ""));
}

Finding ProbeDescriptors(Context& context) {
  constexpr uint64_t kFewest = 64;
  rlimit limit{};
  if (sys::kernel().getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    Finding finding = Finding::Missing(absl::ErrnoToStatus(errno, "getrlimit(RLIMIT_NOFILE)"));
    finding.cause = absl::StrFormat("the limit cannot be read: %s", finding.status.message());
    finding.remedy = "Permit prlimit64 and getrlimit in the seccomp profile of the container or sandbox.";
    return finding;
  }
  const absl::StatusOr<uint64_t> used = sys::CountDescriptors(limit.rlim_cur, context.proc);
  // If the folder cannot be opened for lack of a descriptor, none is left.
  const bool is_known = used.ok() || absl::IsResourceExhausted(used.status());
  const uint64_t left = is_known ? limit.rlim_cur - used.value_or(limit.rlim_cur) : limit.rlim_cur;
  const std::string number = FormatNumber(limit.rlim_cur);
  std::string text = is_known ? absl::StrFormat("%s of %s left", FormatNumber(left), number)
                              : absl::StrFormat("the limit is %s; how many are open is unknown: %s", number,
                                                std::string(used.status().message()));
  if (left >= kFewest) return Finding::Present(std::move(text));
  return Finding::Missing(absl::ResourceExhaustedError(text), text);
}

Finding ProbeSigtrap(Context& context) {
  sys::PerfEventAttr attr = SoftwareAttr(sys::kSwPageFaults);
  attr.sample_period_or_freq = 1'000'000;
  attr.disabled = attr.sigtrap = attr.remove_on_exec = 1;
  return SinceKernel(TryToOpen(attr, {}, "a page-faults:u event with sigtrap", context.rights), "5.13",
                     "accepted for this thread");
}

Finding ProbeInheritThread(Context& context) {
  sys::PerfEventAttr attr = SoftwareAttr(sys::kSwDummy);
  attr.inherit = attr.inherit_thread = 1;
  return SinceKernel(TryToOpen(attr, {}, "a dummy:u event with inherit_thread", context.rights), "5.13",
                     "accepted for this thread");
}

Finding ProbeFormatLost(Context& context) {
  sys::PerfEventAttr attr = SoftwareAttr(sys::kSwDummy);
  attr.read_format = sys::kFormatLost;
  return SinceKernel(TryToOpen(attr, {}, "a dummy:u event with PERF_FORMAT_LOST", context.rights), "6.0",
                     "accepted for this thread");
}

Finding ProbePreciseSampling(Context& context) {
  if (!context.has_pmu) return NeedsPmu(context);
  sys::PerfEventAttr attr = Cycles();
  std::string best;
  for (unsigned precise = 1; precise <= 3; ++precise) {
    // precise_ip is a field of two bits; the mask tells the compiler that nothing is cut off.
    attr.precise_ip = precise & 3;
    absl::Status status = TryToOpen(attr, {}, absl::StrFormat("cycles:u at precision %d", precise), context.rights);
    if (status.ok()) {
      best = absl::StrFormat("up to precise_ip %d", precise);
    } else if (best.empty()) {
      return Finding::Missing(std::move(status));
    }
  }
  return Finding::Present(best);
}

Finding ProbeBranchStacks(Context& context) {
  if (!context.has_pmu) return NeedsPmu(context);
  sys::PerfEventAttr attr = Cycles();
  attr.sample_type = sys::kSampleBranchStack;
  attr.branch_sample_type = sys::kBranchUser | sys::kBranchAny;
  absl::Status status = TryToOpen(attr, {}, "cycles:u with branch stacks", context.rights);
  return status.ok() ? Finding::Present("all user branches") : Finding::Missing(std::move(status));
}

Finding ProbeRseq(Context&) {
  // What CurrentCpuWord points to if the C library registers no area.
  constexpr uint32_t kUnregistered = ~0u;
  const uint32_t cpu = __atomic_load_n(sys::CurrentCpuWord(), __ATOMIC_RELAXED);
  if (cpu != kUnregistered) return Finding::Present(absl::StrFormat("this thread runs on CPU %d", cpu));
  return Finding::Missing(absl::UnavailableError("no rseq area"), "the C library registers no rseq area");
}

}  // namespace perfkit::doctor
