// Opens the rings of a sampler, and waits for them. Rings become smaller until they fit into memory_bytes and into the
// memory that this user may lock. All rings of samples have the same size, so that ring_bytes() is one number; those of
// the side band become smaller once they would exceed them. Rings of threads that start later may be smaller.
#include "src/sample/sampler_rings.h"

#include <errno.h>

#include <algorithm>
#include <array>
#include <bit>

#include "absl/strings/str_format.h"
#include "src/sys/clock.h"
#include "src/sys/kernel.h"
#include "src/sys/perf_error.h"

namespace perfkit::sample {

bool IsOutOfDescriptors(const absl::Status& status) {
  const int error = sys::ErrnoOf(status);
  return absl::IsResourceExhausted(status) && (error == EMFILE || error == ENFILE);
}

bool IsOutOfMemory(const absl::Status& status) {
  return absl::IsResourceExhausted(status) && !IsOutOfDescriptors(status);
}

void SamplerRings::ExplainRingsOfThreads(const absl::Status& reason) {
  ring_status_ = absl::Status(
      absl::StatusCode::kResourceExhausted,
      absl::StrFormat("there is a ring for each thread (Rings::kPerThread), because those of CPUs take too many "
                      "descriptors: threads that start later are attached by the next drain, child processes are not "
                      "sampled. %s%s%s",
                      reason.message(), ring_status_.ok() ? "" : " ", ring_status_.message()));
}

void SamplerRings::Close() {
  epoll_.Reset();
  // Events before the rings that they write to.
  for (RingSet* const set : {&spare, &active, &side}) {
    set->fresh.clear();
    set->closing.clear();
  }
  for (RingSet* const set : {&spare, &active, &side}) {
    set->events.clear();
    set->rings.clear();
  }
}

// Each thread or CPU has a ring of each set.
absl::Status SamplerRings::ChooseSize(size_t threads_or_cpus) {
  const size_t page = sys::PageSize();
  ring_bytes_ = std::bit_ceil(std::max(plan_.options().ring_bytes, page));
  const size_t most = Memory(plan_), rings = threads_or_cpus * (ring_sets() + (plan_.needs_tracking() ? 1 : 0));
  const auto bytes = [&] { return threads_or_cpus * (ring_sets() * ring_bytes_ + plan_.SideBandBytes(ring_bytes_)); };
  while (ring_bytes_ > page && bytes() > most) {
    ring_bytes_ /= 2;
    ring_status_ = absl::Status(
        absl::StatusCode::kResourceExhausted,
        absl::StrFormat("%d rings may have %d bytes together (SamplerOptions::memory_bytes)", rings, most));
  }
  if (bytes() <= most) return absl::OkStatus();
  const bool may_have_fewer = plan_.many_threads() && !plan_.per_cpu_rings();
  const char* const fewer = may_have_fewer ? ", or use one ring for each CPU (Rings::kPerCpu)" : "";
  return absl::Status(
      absl::StatusCode::kResourceExhausted,
      absl::StrFormat("%d rings of one page each are more than SamplerOptions::memory_bytes, %d. Remedy: raise it%s.",
                      rings, most, fewer));
}

absl::Status SamplerRings::OpenOnce(const std::vector<pid_t>& tids, const std::vector<int>& cpus) {
  absl::Status status;
  if (plan_.needs_tracking()) status = side.OpenRings(plan_, tids, cpus, plan_.SideBandBytes(ring_bytes_));
  if (status.ok()) status = active.OpenRings(plan_, tids, cpus, ring_bytes_);
  if (status.ok() && ring_sets() == 2) status = spare.OpenRings(plan_, tids, cpus, ring_bytes_);
  return status;
}

absl::Status SamplerRings::Open(const std::vector<pid_t>& tids, const std::vector<int>& cpus) {
  if (absl::Status status = ChooseSize(tids.size() * cpus.size()); !status.ok()) return status;
  while (true) {
    const absl::Status status = OpenOnce(tids, cpus);
    if (status.ok()) return status;
    for (RingSet* const set : {&spare, &active, &side}) set->rings.clear();
    if (!IsOutOfMemory(status) || ring_bytes_ <= sys::PageSize()) return status;
    ring_status_ = status;
    ring_bytes_ /= 2;
  }
}

absl::Status SamplerRings::AddRings(pid_t tid, size_t bytes) {
  absl::Status status = side.AddRing(plan_, tid, -1, plan_.SideBandBytes(bytes));
  if (status.ok()) status = active.AddRing(plan_, tid, -1, bytes);
  if (status.ok() && ring_sets() == 2) status = spare.AddRing(plan_, tid, -1, bytes);
  return status;
}

absl::Status SamplerRings::AddRingsOf(pid_t tid) {
  const size_t used = active.RingBytes() + spare.RingBytes() + side.RingBytes();
  const size_t most = Memory(plan_), left = most - std::min(most, used);
  absl::Status status(absl::StatusCode::kResourceExhausted,
                      absl::StrFormat("rings take %d bytes (SamplerOptions::memory_bytes)", used));
  for (size_t bytes = ring_bytes_; bytes >= sys::PageSize(); bytes /= 2) {
    if (ring_sets() * bytes + plan_.SideBandBytes(bytes) > left) continue;
    status = AddRings(tid, bytes);
    if (status.ok()) return status;
    DropRingsOf(tid);
    if (!IsOutOfMemory(status)) return status;
  }
  return status;
}

void SamplerRings::DropRingsOf(pid_t tid) {
  for (RingSet* const set : {&active, &spare, &side}) {
    std::erase_if(set->rings, [tid](const std::unique_ptr<RingSlot>& slot) { return slot->tid == tid; });
  }
}

absl::Status SamplerRings::SetUpRingsOf(pid_t tid, bool paused) {
  absl::Status status;
  for (const RingSet* const set : {&active, &spare, &side}) {
    for (const std::unique_ptr<RingSlot>& slot : set->rings) {
      if (slot->tid != tid || !status.ok()) continue;
      if (set != &side && paused) status = slot->ring.Pause(true);
      if (set != &spare && status.ok()) status = Poll(*slot);
    }
  }
  return status;
}

absl::Status SamplerRings::OpenPoll() {
  epoll_ = sys::OwnedFd(sys::kernel().epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return absl::ErrnoToStatus(errno, "cannot make a descriptor to wait on (epoll)");
  for (const RingSet* const set : {&active, &side}) {
    for (const std::unique_ptr<RingSlot>& slot : set->rings) {
      if (absl::Status status = Poll(*slot); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

absl::Status SamplerRings::Poll(const RingSlot& slot) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = slot.ring.fd();
  if (sys::kernel().epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, slot.ring.fd(), &event) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "cannot wait for a ring (epoll)");
}

void SamplerRings::DropHungUp() {
  std::array<epoll_event, 16> events;
  // epoll returns ready descriptors in turns, so this sees all of them.
  for (size_t seen = 0; seen <= active.rings.size() + side.rings.size(); seen += events.size()) {
    const int ready = sys::kernel().epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < ready; ++i) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      if ((event.events & EPOLLHUP) != 0) DropHungUp(event.data.fd);
    }
  }
}

void SamplerRings::DropHungUp(int fd) {
  sys::kernel().epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  if (fd == watched_end_) {
    watched_end_ = -1;
    SawExit();
  }
  ForEachSlot([fd](RingSlot& slot) { slot.hung_up = slot.hung_up || slot.ring.fd() == fd; });
}

// Wakes poll_fd() once the event `fd`, the first that lives, hangs up. Without that only records would wake it. If the
// event can't be watched, Drain finds the end without a wake-up. The event's poll takes the wake-up of the ring that it
// shares with others (perf_poll in kernel/events/core.c), so it is waited for as well.
void SamplerRings::WatchEnd(int fd) {
  if (fd == watched_end_ || !epoll_) return;
  if (watched_end_ >= 0) sys::kernel().epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, watched_end_, nullptr);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  const bool watched = fd >= 0 && sys::kernel().epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
  watched_end_ = watched ? fd : -1;
}

// The owner of a thread's rings hangs up with it, which DropHungUp finds.
void SamplerRings::CheckEnd(bool is_running) {
  if (plan_.whole_cpus()) return;
  if (!plan_.per_cpu_rings()) {
    target_ended_ =
        std::ranges::all_of(active.rings, [](const std::unique_ptr<RingSlot>& slot) { return slot->hung_up; });
    return;
  }
  const uint64_t now_ns = sys::ClockNs(CLOCK_MONOTONIC);
  if (is_running && end_checks_ == 0 && now_ns - end_checked_ns_ < kEndCheckNs) return;
  if (end_checks_ != 0) --end_checks_;
  end_checked_ns_ = now_ns;
  const RingEvent* const living = side.FirstLiving();
  target_ended_ = living == nullptr && !side.events.empty();
  WatchEnd(living == nullptr ? -1 : living->fd.get());
}

absl::Status SamplerRings::Pause(bool pause) const {
  absl::Status status = active.Pause(pause);
  status.Update(spare.Pause(pause));
  return status;
}

bool SamplerRings::HasRecords() {
  bool any = false;
  ForEachSlot([&](const RingSlot& slot) { any = any || slot.ring.reader().has_records(); });
  return any;
}

std::vector<pid_t> SamplerRings::ThreadsWithRecords() {
  std::vector<pid_t> tids;
  ForEachSlot([&](const RingSlot& slot) {
    if (slot.ring.reader().has_records()) tids.push_back(slot.tid);
  });
  std::ranges::sort(tids);
  return tids;
}

void SamplerRings::SwitchOnStuck() {
  for (RingSet* const set : {&side, &active}) {
    for (RingEvent& ring_event : set->events) {
      ring_event.stuck = ring_event.stuck && !ring_event.Switch(sys::kIocEnable).ok();
    }
  }
}

void SamplerRings::OnForkedChild() {
  for (RingSet* const set : {&active, &spare, &side}) set->OnForkedChild();
  epoll_.Reset();
}

}  // namespace perfkit::sample
