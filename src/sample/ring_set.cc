// Opens rings and attaches threads to them. A ring belongs to an event of its own, the ring owner, which counts
// nothing; the events that are sampled write into it too (PERF_EVENT_IOC_SET_OUTPUT). So events come and go with their
// threads, and the ring stays.
#include "src/sample/ring_set.h"

#include <algorithm>
#include <utility>

#include "src/open/task_cpu.h"
#include "src/sample/stack_rings.h"
#include "src/sys/fork_registry.h"
#include "src/sys/kernel.h"

namespace perfkit::sample {

namespace {

bool HasHungUp(int epoll, int fd) {
  epoll_event event{};  // No event is asked for: a hang-up always comes.
  if (sys::kernel().epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) return false;
  const int ready = sys::kernel().epoll_wait(epoll, &event, 1, 0);
  sys::kernel().epoll_ctl(epoll, EPOLL_CTL_DEL, fd, nullptr);
  return ready == 1 && (event.events & EPOLLHUP) != 0;
}

}  // namespace

absl::StatusOr<std::vector<int>> CpusOf(const Plan& plan) {
  if (!plan.whole_cpus() && !plan.per_cpu_rings()) return std::vector<int>{-1};
  if (!plan.whole_cpus()) return open::PresentCpus();
  const absl::StatusOr<std::vector<open::TaskCpu>> task_cpus = open::TaskCpusOf(plan.target());
  if (!task_cpus.ok()) return task_cpus.status();
  std::vector<int> cpus;
  for (const open::TaskCpu& task_cpu : *task_cpus) cpus.push_back(task_cpu.cpu);
  return cpus;
}

absl::Status RingSet::AddRing(const Plan& plan, pid_t tid, int cpu, size_t bytes) {
  const bool samples = role_ == Role::kSamples;
  open::OpenRequest owner = plan.RingOwnerRequest();
  const uint32_t wanted = samples ? plan.options().watermark_bytes : 0;
  const size_t usual = samples && plan.live() ? std::min(bytes / 4, StackRings::kWatermarkBytes) : bytes / 4;
  // The kernel wakes when the ring holds more than the watermark, so one of the ring's size would never be reached.
  const size_t watermark = wanted != 0 ? std::min<size_t>(wanted, bytes / 2) : usual;
  owner.attr.wakeup_events_or_watermark = static_cast<uint32_t>(watermark);
  owner.cpu = cpu;
  // Owned by the main thread: the thread that polls may change, and the owner must not end before the sampler.
  owner.pid = plan.per_cpu_rings() ? sys::kernel().getpid() : tid;
  const RingMode mode = samples ? plan.options().mode : RingMode::kStream;
  absl::StatusOr<open::OutputRing> ring = open::OutputRing::Open(owner, mode, bytes, plan.rights());
  if (!ring.ok()) return ring.status();
  rings.push_back(std::make_unique<RingSlot>(RingSlot{.ring = *std::move(ring), .tid = tid, .cpu = cpu, .last = {}}));
  return absl::OkStatus();
}

// A thread that has ended meanwhile needs no ring.
absl::Status RingSet::OpenRings(const Plan& plan, const std::vector<pid_t>& tids, const std::vector<int>& cpus,
                                size_t bytes) {
  absl::Status gone;
  for (const pid_t tid : tids) {
    for (const int cpu : cpus) {
      const absl::Status status = AddRing(plan, tid, cpu, bytes);
      if (!status.ok() && !absl::IsNotFound(status)) return status;
      if (!status.ok()) gone = status;
    }
  }
  return rings.empty() ? gone : absl::OkStatus();
}

bool RingSet::HasRing(pid_t tid) const {
  return std::ranges::any_of(rings, [tid](const std::unique_ptr<RingSlot>& slot) {
    return slot->tid == RingSlot::kShared || slot->tid == tid;
  });
}

size_t RingSet::RingBytes() const {
  size_t bytes = 0;
  for (const std::unique_ptr<RingSlot>& slot : rings) bytes += slot->ring.reader().size_bytes();
  return bytes;
}

absl::Status RingSet::Attach(const Plan& plan, const SamplingLevel& level, pid_t tid, bool tracking) {
  for (const std::unique_ptr<RingSlot>& slot : rings) {
    if (slot->tid != RingSlot::kShared && slot->tid != tid) continue;
    if (absl::Status status = AttachTo(plan, level, tid, *slot, tracking); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status RingSet::AttachTrackingEvent(const Plan& plan, open::OpenRequest request, pid_t tid,
                                          const RingSlot& slot) {
  absl::StatusOr<RingEvent> tracking_event = OpenTrackingEvent(plan, std::move(request), {tid, slot.cpu}, slot.ring);
  if (!tracking_event.ok()) return tracking_event.status();
  tracking_event->pausable = role_ == Role::kSamples;
  events.push_back(*std::move(tracking_event));
  return absl::OkStatus();
}

absl::Status RingSet::AttachTo(const Plan& plan, const SamplingLevel& level, pid_t tid, const RingSlot& slot,
                               bool tracking) {
  if (role_ == Role::kSideBand) return AttachTrackingEvent(plan, plan.TrackingRequest(), tid, slot);
  const open::TaskCpu task_cpu{tid, slot.cpu};
  if (tracking && plan.options().switches) {
    if (absl::Status status = AttachTrackingEvent(plan, plan.SwitchesRequest(), tid, slot); !status.ok()) return status;
  }
  for (size_t i = 0; i < plan.events().size(); ++i) {
    for (const size_t part : plan.PartsOn(i, slot.cpu)) {
      absl::StatusOr<RingEvent> ring_event =
          OpenRingEvent(plan, level, static_cast<uint32_t>(i), part, task_cpu, slot.ring);
      if (!ring_event.ok()) return ring_event.status();
      events.push_back(*std::move(ring_event));
    }
  }
  return absl::OkStatus();
}

absl::Status RingSet::SwitchThose(bool on, bool tracking) {
  absl::Status first;
  for (RingEvent& ring_event : events) {
    if ((ring_event.event == RingEvent::kTracking) != tracking) continue;
    const absl::Status status = ring_event.Switch(on ? sys::kIocEnable : sys::kIocDisable);
    ring_event.stuck = on && !status.ok();
    first.Update(status);
  }
  return first;
}

absl::Status RingSet::SwitchEvents(bool on, bool inherited) {
  absl::Status first;
  // Twice if threads inherit events, for the reason that SwitchAll has.
  for (int pass = 0; pass < (inherited ? 2 : 1); ++pass) first.Update(SwitchThose(on, false));
  return first;
}

// A thread that is started by one with inherited events, while they are being switched, inherits the old state and may
// not be on the kernel's list of children yet. The second pass finds it there.
absl::Status RingSet::SwitchAll(bool on, bool inherited) {
  absl::Status first;
  for (int pass = 0; pass < (inherited ? 2 : 1); ++pass) {
    first.Update(SwitchThose(on, on));
    first.Update(SwitchThose(on, !on));
  }
  return first;
}

absl::Status RingSet::Pause(bool pause) const {
  for (const std::unique_ptr<RingSlot>& slot : rings) {
    if (absl::Status status = slot->ring.Pause(pause); !status.ok()) return status;
  }
  return absl::OkStatus();
}

bool RingSet::IsNearlyFull(size_t largest_record) const {
  return std::any_of(rings.begin(), rings.end(), [&](const std::unique_ptr<RingSlot>& slot) {
    if (slot->ring.reader().mode() == RingMode::kOverwrite) return false;  // It always has room.
    return slot->ring.fill_bytes() + largest_record > slot->ring.reader().size_bytes();
  });
}

// An event hangs up once its thread has ended, and no thread that inherited it lives (is_event_hup in
// kernel/events/core.c). A thread's events are adjacent, and one of them stands for all. Mostly the first thread lives,
// so that this is one look.
const RingEvent* RingSet::FirstLiving() {
  const sys::ForkBlocker fork_blocker;
  sys::OwnedFd epoll;
  int tid = RingSlot::kShared;
  for (RingEvent& ring_event : events) {
    if (std::exchange(tid, ring_event.tid) == ring_event.tid || ring_event.hung_up) continue;
    if (!epoll) epoll = sys::OwnedFd(sys::kernel().epoll_create1(EPOLL_CLOEXEC));
    ring_event.hung_up = epoll && HasHungUp(epoll.get(), ring_event.fd.get());
    if (!ring_event.hung_up) return &ring_event;
  }
  return nullptr;
}

void RingSet::OnForkedChild() {
  for (std::vector<RingEvent>* const opened : {&events, &fresh, &closing}) {
    for (RingEvent& ring_event : *opened) ring_event.OnForkedChild();
  }
  for (const std::unique_ptr<RingSlot>& slot : rings) slot->ring.OnForkedChild();
}

}  // namespace perfkit::sample
