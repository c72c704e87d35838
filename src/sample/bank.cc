// Opens rings and attaches threads to them.
#include "src/sample/bank.h"

#include <algorithm>
#include <utility>

#include "src/open/place.h"
#include "src/sample/stack_rings.h"
#include "src/sys/kernel.h"

namespace perfkit::sample {

absl::StatusOr<std::vector<int>> CpusOf(const Plan& plan) {
  if (!plan.whole_cpus() && !plan.per_cpu_rings()) return std::vector<int>{-1};
  if (!plan.whole_cpus()) return open::PresentCpus();
  const absl::StatusOr<std::vector<open::Place>> places = open::PlacesOf(plan.target());
  if (!places.ok()) return places.status();
  std::vector<int> cpus;
  for (const open::Place& place : *places) cpus.push_back(place.cpu);
  return cpus;
}

absl::Status Bank::AddRing(const Plan& plan, pid_t tid, int cpu, size_t bytes) {
  const bool samples = role_ == Role::kSamples;
  open::OpenRequest anchor = plan.AnchorRequest();
  const uint32_t wanted = samples ? plan.options().watermark_bytes : 0;
  const size_t usual = samples && plan.live() ? std::min(bytes / 4, StackRings::kWatermarkBytes) : bytes / 4;
  // The kernel wakes when more than the watermark has been written: one of the ring's size is never reached.
  const size_t watermark = wanted != 0 ? std::min<size_t>(wanted, bytes / 2) : usual;
  anchor.attr.wakeup_events_or_watermark = static_cast<uint32_t>(watermark);
  anchor.cpu = cpu;
  // Of the main thread: whoever polls may be another tomorrow, and the owner must not end before.
  anchor.pid = plan.per_cpu_rings() ? sys::kernel().getpid() : tid;
  const RingMode mode = samples ? plan.options().mode : RingMode::kStream;
  absl::StatusOr<open::OutputRing> ring = open::OutputRing::Open(anchor, mode, bytes, plan.rights());
  if (!ring.ok()) return ring.status();
  rings.push_back(std::make_unique<RingSlot>(RingSlot{.ring = *std::move(ring), .tid = tid, .cpu = cpu, .last = {}}));
  return absl::OkStatus();
}

// A thread that has ended meanwhile needs no ring.
absl::Status Bank::OpenRings(const Plan& plan, const std::vector<pid_t>& tids, const std::vector<int>& cpus,
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

bool Bank::HasRing(pid_t tid) const {
  return std::ranges::any_of(rings, [tid](const std::unique_ptr<RingSlot>& slot) {
    return slot->tid == RingSlot::kShared || slot->tid == tid;
  });
}

size_t Bank::RingBytes() const {
  size_t bytes = 0;
  for (const std::unique_ptr<RingSlot>& slot : rings) bytes += slot->ring.reader().size_bytes();
  return bytes;
}

absl::Status Bank::Attach(const Plan& plan, const Effort& effort, pid_t tid, bool carriers) {
  for (const std::unique_ptr<RingSlot>& slot : rings) {
    if (slot->tid != RingSlot::kShared && slot->tid != tid) continue;
    if (absl::Status status = AttachTo(plan, effort, tid, *slot, carriers); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Bank::AttachCarrier(const Plan& plan, open::OpenRequest request, pid_t tid, const RingSlot& slot) {
  absl::StatusOr<Leaf> carrier = OpenCarrier(plan, std::move(request), {tid, slot.cpu}, slot.ring);
  if (!carrier.ok()) return carrier.status();
  leaves.push_back(*std::move(carrier));
  return absl::OkStatus();
}

absl::Status Bank::AttachTo(const Plan& plan, const Effort& effort, pid_t tid, const RingSlot& slot, bool carriers) {
  if (role_ == Role::kSideBand) return AttachCarrier(plan, plan.TrackingRequest(), tid, slot);
  const LeafPlace place{tid, slot.cpu};
  if (carriers && plan.options().switches) {
    if (absl::Status status = AttachCarrier(plan, plan.SwitchesRequest(), tid, slot); !status.ok()) return status;
  }
  for (size_t i = 0; i < plan.events().size(); ++i) {
    for (const size_t part : plan.PartsOn(i, slot.cpu)) {
      absl::StatusOr<Leaf> leaf = OpenLeaf(plan, effort, static_cast<uint32_t>(i), part, place, slot.ring);
      if (!leaf.ok()) return leaf.status();
      leaves.push_back(*std::move(leaf));
    }
  }
  return absl::OkStatus();
}

absl::Status Bank::SwitchThose(bool on, bool carriers) {
  absl::Status first;
  for (Leaf& leaf : leaves) {
    if ((leaf.event == Leaf::kCarrier) != carriers) continue;
    const absl::Status status = leaf.Switch(on ? sys::kIocEnable : sys::kIocDisable);
    leaf.stuck = on && !status.ok();
    first.Update(status);
  }
  return first;
}

absl::Status Bank::SwitchEvents(bool on, bool inherited) {
  absl::Status first;
  for (int pass = 0; pass < (inherited ? 2 : 1); ++pass) first.Update(SwitchThose(on, false));
  return first;
}

// A thread that is born of one that had inherited its events, while these are being switched, takes the old state over
// and may not be on the kernel's list yet: the second pass finds it there.
absl::Status Bank::SwitchAll(bool on, bool inherited) {
  absl::Status first;
  for (int pass = 0; pass < (inherited ? 2 : 1); ++pass) {
    first.Update(SwitchThose(on, on));
    first.Update(SwitchThose(on, !on));
  }
  return first;
}

absl::Status Bank::Pause(bool pause) const {
  for (const std::unique_ptr<RingSlot>& slot : rings) {
    if (absl::Status status = slot->ring.Pause(pause); !status.ok()) return status;
  }
  return absl::OkStatus();
}

bool Bank::IsNearlyFull(size_t largest_record) const {
  return std::any_of(rings.begin(), rings.end(), [&](const std::unique_ptr<RingSlot>& slot) {
    if (slot->ring.reader().mode() == RingMode::kOverwrite) return false;  // there is always room
    return slot->ring.fill_bytes() + largest_record > slot->ring.reader().size_bytes();
  });
}

void Bank::LetGo() {
  for (Leaf& leaf : leaves) leaf.LetGo();
  for (const std::unique_ptr<RingSlot>& slot : rings) slot->ring.LetGo();
}

}  // namespace perfkit::sample
