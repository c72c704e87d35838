// Opens, reads and switches single events.
#include "src/sample/ring_event.h"

#include <errno.h>

#include <array>
#include <utility>

#include "absl/strings/str_format.h"
#include "src/sys/perf_error.h"
#include "src/sys/read.h"
#include "src/sys/sample_signals.h"

namespace perfkit::sample {
namespace {

constexpr int kInterruptions = 16;

absl::Status IoctlError(std::string_view what) { return sys::PerfError(sys::PerfCall::kIoctl, errno, what); }

// Redirects the event's output to the ring, and reads the id that its records will have.
absl::Status Connect(RingEvent& ring_event, const open::OutputRing& ring) {
  if (absl::Status status = ring.TakeOutputOf(ring_event.fd.get()); !status.ok()) return status;
  if (sys::kernel().ioctl(ring_event.fd.get(), sys::kIocId, reinterpret_cast<unsigned long>(&ring_event.id)) != 0) {
    return IoctlError("asking for an event's id");
  }
  return absl::OkStatus();
}

absl::StatusOr<open::OpenedEvent> OpenAt(const open::TaskCpu& task_cpu, open::OpenRequest request, const Plan& plan) {
  request.pid = task_cpu.pid;
  request.cpu = task_cpu.cpu;
  return open::OpenEvent(request, plan.rights());
}

absl::Status OpenFollowers(const Plan& plan, size_t part, const open::TaskCpu& task_cpu, RingEvent& ring_event) {
  for (size_t i = 0; i < plan.events()[ring_event.event].followers.size(); ++i) {
    open::OpenRequest request = plan.FollowerRequest(ring_event.event, part, i);
    request.group_fd = ring_event.fd.get();
    absl::StatusOr<open::OpenedEvent> opened = OpenAt(task_cpu, request, plan);
    if (!opened.ok()) return opened.status();
    ring_event.followers.push_back(std::move(opened->fd));
  }
  return absl::OkStatus();
}

absl::Status SetFilter(const PlannedEvent& event, const RingEvent& ring_event) {
  if (event.filter.empty()) return absl::OkStatus();
  const auto text = reinterpret_cast<unsigned long>(event.filter.c_str());
  if (sys::kernel().ioctl(ring_event.fd.get(), sys::kIocSetFilter, text) == 0) return absl::OkStatus();
  return absl::Status(absl::StatusCode::kInvalidArgument,
                      absl::StrFormat("event '%s': the kernel refuses the filter '%s' (errno %d)", event.config.name,
                                      event.filter, errno));
}

}  // namespace

absl::StatusOr<RingEvent> OpenRingEvent(const Plan& plan, const SamplingLevel& level, uint32_t event, size_t part,
                                        const open::TaskCpu& task_cpu, const open::OutputRing& ring) {
  open::OpenRequest request = plan.EventRequest(event, part, level);
  // The signal brings these 64 bits along (si_perf_data): they say whose it is.
  const bool signals = request.attr.sigtrap != 0;
  if (signals) request.attr.sig_data = plan.SigData(event, task_cpu.pid);
  absl::StatusOr<open::OpenedEvent> opened = OpenAt(task_cpu, std::move(request), plan);
  if (!opened.ok()) return opened.status();
  RingEvent ring_event;
  ring_event.fd = SignallingFd(std::move(opened->fd));
  if (signals) ring_event.fd.AddTo(*plan.switches(), SignalNumber::Of(event, task_cpu.pid));
  ring_event.event = event;
  ring_event.tid = task_cpu.pid;
  ring_event.cpu = task_cpu.cpu;
  ring_event.user_only = opened->user_only;
  if (absl::Status status = SetFilter(plan.events()[event], ring_event); !status.ok()) return status;
  if (absl::Status status = OpenFollowers(plan, part, task_cpu, ring_event); !status.ok()) return status;
  if (absl::Status status = Connect(ring_event, ring); !status.ok()) return status;
  if (plan.signals_by_descriptor() && level.stack != 0 && plan.events()[event].stack) {
    const absl::Status status =
        sys::SampleClaim::SignalBy(ring_event.fd.get(), task_cpu.pid, plan.SigData(event, task_cpu.pid));
    if (!status.ok()) return status;
  }
  return ring_event;
}

// The kernel checks whether a group fits the counters, but ignores disabled events (arm64: validate_event in
// drivers/perf/arm_pmu.c). A sampler's events are opened disabled, so a group that is too large by its first event
// would open and never run. So it is opened once enabled, without sampling, on the calling thread.
absl::Status CheckFits(const Plan& plan, uint32_t event) {
  const EventConfig& config = plan.events()[event].config;
  if (plan.events()[event].followers.empty()) return absl::OkStatus();
  for (size_t part = 0; part < config.parts.size(); ++part) {
    open::TaskCpu task_cpu;
    if (plan.whole_cpus()) {
      const auto task_cpus = open::TaskCpusOf(plan.target(), config.parts[part].only_cpus);
      if (!task_cpus.ok()) return task_cpus.status();
      task_cpu = {task_cpus->front().pid, task_cpus->front().cpu};
    }
    open::OpenRequest request = plan.EventRequest(event, part, plan.FullLevel());
    request.attr.disabled = request.attr.enable_on_exec = request.attr.freq = request.attr.sigtrap = 0;
    request.attr.sample_period_or_freq = 0;
    absl::StatusOr<open::OpenedEvent> opened = OpenAt(task_cpu, request, plan);
    if (!opened.ok()) return opened.status();
    RingEvent trial;
    trial.fd = SignallingFd(std::move(opened->fd));
    trial.event = event;
    if (absl::Status status = OpenFollowers(plan, part, task_cpu, trial); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<RingEvent> OpenTrackingEvent(const Plan& plan, open::OpenRequest request, const open::TaskCpu& task_cpu,
                                            const open::OutputRing& ring) {
  absl::StatusOr<open::OpenedEvent> opened = OpenAt(task_cpu, std::move(request), plan);
  if (!opened.ok()) return opened.status();
  RingEvent ring_event;
  ring_event.fd = SignallingFd(std::move(opened->fd));
  ring_event.tid = task_cpu.pid;
  if (absl::Status status = Connect(ring_event, ring); !status.ok()) return status;
  return ring_event;
}

// In a group, the first value is this event's.
std::optional<EventCount> RingEvent::Read(const SampleLayout& layout) {
  constexpr size_t kMaxWords = 256;
  std::array<uint64_t, kMaxWords> words;
  ssize_t got = -1;
  for (int i = 0; i < kInterruptions && got < 0; ++i) {
    got = sys::Read(fd.get(), words.data(), sizeof(words));
    if (got < 0 && errno != EINTR) break;
  }
  if (got <= 0) return std::nullopt;
  uint64_t format = layout.bits().read_format;
  if (event == kTracking) format &= ~uint64_t{kReadGroup};
  const auto* const bytes = reinterpret_cast<const std::byte*>(words.data());
  const std::optional<ReadValues> values = ReadValues::Parse({bytes, static_cast<size_t>(got) / 8}, format);
  if (!values || values->size() == 0) return std::nullopt;
  const ReadValues::Value own = (*values)[0];
  known = {own.value, own.lost.value_or(0)};
  return known;
}

absl::Status RingEvent::Switch(unsigned long request) const {
  if (sys::kernel().ioctl(fd.get(), request, 0) == 0) return absl::OkStatus();
  return IoctlError("switching an event on or off");
}

}  // namespace perfkit::sample
