// Opens a sampler: chooses the size of the rings, opens them, and attaches the threads. Rings become smaller until they
// fit into memory_bytes and into the memory that this user may lock. Threads are attached in rounds, until a round
// finds no new one, because threads may start meanwhile. Index then builds the tables by which Drain finds the writer
// of each record.
#include "src/sample/sampler_impl.h"

#include <errno.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "absl/strings/str_format.h"
#include "src/open/task_cpu.h"
#include "src/sys/clock.h"
#include "src/sys/kernel.h"
#include "src/sys/perf_error.h"

namespace perfkit::sample {
namespace {

// Maximum number of rounds that attach threads which started during the round before.
constexpr int kRounds = 64;

// Returns true if smaller rings may do: what was short was memory, not descriptors.
bool IsOutOfMemory(const absl::Status& status) {
  const int error = sys::ErrnoOf(status);
  return absl::IsResourceExhausted(status) && error != EMFILE && error != ENFILE;
}

}  // namespace

absl::StatusOr<std::vector<pid_t>> ThreadsNow(const Plan& plan) {
  if (plan.whole_cpus()) return std::vector<pid_t>{RingSlot::kShared};
  if (plan.target().kind == Target::Kind::kThisThread) return std::vector<pid_t>{plan.target().id};
  const absl::StatusOr<std::vector<open::TaskCpu>> places = open::TaskCpusOf(plan.target());
  if (!places.ok()) return places.status();
  std::vector<pid_t> tids;
  for (const open::TaskCpu& task_cpu : *places) tids.push_back(task_cpu.pid);
  return tids;
}

uint64_t Now(clockid_t clock) { return sys::ClockNs(clock); }

SamplerImpl::SamplerImpl(Plan plan)
    : plan_(std::move(plan)),
      overhead_(plan_.options().cpu_budget, plan_.FullLevel(), plan_.MinStack()),
      level_(plan_.FullLevel()),
      accounting_(plan_.events().size()),
      fork_listener_([](void* self) { static_cast<SamplerImpl*>(self)->OnForkedChild(); }, this) {}

SamplerImpl::~SamplerImpl() {
  const sys::ForkBlocker fork_blocker;
  epoll_.Reset();
  fresh_.clear();
  fresh_spare_.clear();
  for (RingSet* const set : {&spare_, &active_, &side_}) {
    set->events.clear();
    set->rings.clear();
  }
}

absl::StatusOr<std::unique_ptr<SamplerImpl>> SamplerImpl::Open(Plan plan) {
  auto core = std::make_unique<SamplerImpl>(std::move(plan));
  if (absl::Status status = core->OpenAll(); !status.ok()) return status;
  return core;
}

absl::Status SamplerImpl::OpenAll() {
  const absl::StatusOr<std::vector<int>> cpus = CpusOf(plan_);
  if (!cpus.ok()) return cpus.status();
  std::vector<pid_t> tids = {RingSlot::kShared};
  if (!plan_.per_cpu_rings() && !plan_.whole_cpus()) {
    absl::StatusOr<std::vector<pid_t>> threads = ThreadsNow(plan_);
    if (!threads.ok()) return threads.status();
    tids = *std::move(threads);
  }
  if (absl::Status status = OpenLive(); !status.ok()) return status;
  if (absl::Status status = ChooseSize(tids.size() * cpus->size()); !status.ok()) return status;
  if (absl::Status status = OpenRings(tids, *cpus); !status.ok()) return status;
  for (uint32_t event = 0; event < plan_.events().size(); ++event) {
    if (absl::Status status = CheckFits(plan_, event); !status.ok()) return status;
  }
  if (absl::Status status = AttachThreads(); !status.ok()) return status;
  Index(0);
  return OpenPoll();
}

// `places` is the number of threads or CPUs. Each has a ring of each set.
absl::Status SamplerImpl::ChooseSize(size_t places) {
  const size_t page = sys::PageSize();
  ring_bytes_ = std::bit_ceil(std::max(plan_.options().ring_bytes, page));
  const size_t most = RingMemory(), rings = places * (ring_sets() + (plan_.needs_tracking() ? 1 : 0));
  const auto bytes = [&] { return places * (ring_sets() * ring_bytes_ + plan_.SideBandBytes(ring_bytes_)); };
  while (ring_bytes_ > page && bytes() > most) {
    ring_bytes_ /= 2;
    shrunk_ = absl::Status(
        absl::StatusCode::kResourceExhausted,
        absl::StrFormat("%d rings may have %d bytes together (SamplerOptions::memory_bytes)", rings, most));
  }
  if (bytes() <= most) return absl::OkStatus();
  return absl::Status(
      absl::StatusCode::kResourceExhausted,
      absl::StrFormat("%d rings of one page each are more than SamplerOptions::memory_bytes, %d. Remedy: "
                      "raise it, or use one ring for each CPU (Rings::kPerCpu).",
                      rings, most));
}

absl::Status SamplerImpl::OpenRingsOnce(const std::vector<pid_t>& tids, const std::vector<int>& cpus) {
  absl::Status status;
  if (plan_.needs_tracking()) status = side_.OpenRings(plan_, tids, cpus, plan_.SideBandBytes(ring_bytes_));
  if (status.ok()) status = active_.OpenRings(plan_, tids, cpus, ring_bytes_);
  if (status.ok() && ring_sets() == 2) status = spare_.OpenRings(plan_, tids, cpus, ring_bytes_);
  return status;
}

// All rings of samples have the same size, so that ring_bytes() is one number. If this user may not lock that much,
// they become smaller, and so do those of the side band once they would exceed them.
absl::Status SamplerImpl::OpenRings(const std::vector<pid_t>& tids, const std::vector<int>& cpus) {
  while (true) {
    const absl::Status status = OpenRingsOnce(tids, cpus);
    if (status.ok()) return status;
    for (RingSet* const set : {&spare_, &active_, &side_}) set->rings.clear();
    if (!IsOutOfMemory(status)) {
      const absl::StatusOr<std::vector<pid_t>> threads = ThreadsNow(plan_);
      return threads.ok() ? ExplainDescriptors(status, threads->size(), cpus.size()) : status;
    }
    if (ring_bytes_ <= sys::PageSize()) return status;
    shrunk_ = status;
    ring_bytes_ /= 2;
  }
}

// Repeats until no thread has started meanwhile. Later threads inherit the events.
absl::Status SamplerImpl::AttachThreads(bool tracking) {
  for (int round = 0; round < kRounds; ++round) {
    const absl::StatusOr<std::vector<pid_t>> threads = ThreadsNow(plan_);
    if (!threads.ok()) return threads.status();
    const size_t before = active_.events.size();
    bool any = false;
    for (const pid_t tid : *threads) {
      if (inheritance_.IsAttached(tid) || (!tracking && !active_.HasRing(tid))) continue;
      if (round > 0 && !any && plan_.per_cpu_rings() && plan_.target().inherit) {
        // From here on threads may have two copies of an event: FORK records are needed to know their parents.
        inheritance_.ExpectDuplicates();
        if (tracking) side_inheritance_.ExpectDuplicates();
        if (absl::Status status = side_.SwitchAll(true, true); !status.ok()) return status;
      }
      any = true;
      const absl::Status status = AttachOne(tid, tracking);
      if (!status.ok() && !absl::IsNotFound(status)) {
        return ExplainDescriptors(status, threads->size(), plan_.rings_by_cpu() ? active_.rings.size() : 1);
      }
      if (!status.ok() && threads->size() == 1) return status;
    }
    if (inheritance_.expects_duplicates() && active_.events.size() != before) {
      if (absl::Status status = side_.SwitchAll(true, true); !status.ok()) return status;
    }
    if (!any) return absl::OkStatus();
    if (!plan_.many_threads()) return absl::OkStatus();
  }
  return absl::AbortedError(absl::StrFormat(
      "%s: threads kept starting while they were being attached, %d times over. Remedy: open the sampler before the "
      "threads start, or try again.",
      open::Describe(plan_.target()), kRounds));
}

absl::Status SamplerImpl::AddRingsOf(pid_t tid, size_t bytes) {
  absl::Status status = side_.AddRing(plan_, tid, -1, plan_.SideBandBytes(bytes));
  if (status.ok()) status = active_.AddRing(plan_, tid, -1, bytes);
  if (status.ok() && ring_sets() == 2) status = spare_.AddRing(plan_, tid, -1, bytes);
  return status;
}

void SamplerImpl::DropRingsOf(pid_t tid) {
  for (RingSet* const set : {&active_, &spare_, &side_}) {
    std::erase_if(set->rings, [tid](const std::unique_ptr<RingSlot>& slot) { return slot->tid == tid; });
  }
}

// Opens rings for a thread that started later, of the size of the others, or less if memory_bytes is nearly used up.
absl::Status SamplerImpl::AddLateRings(pid_t tid) {
  const size_t used = active_.RingBytes() + spare_.RingBytes() + side_.RingBytes();
  const size_t most = RingMemory(), left = most - std::min(most, used);
  absl::Status status(absl::StatusCode::kResourceExhausted,
                      absl::StrFormat("rings take %d bytes (SamplerOptions::memory_bytes)", used));
  for (size_t bytes = ring_bytes_; bytes >= sys::PageSize(); bytes /= 2) {
    if (ring_sets() * bytes + plan_.SideBandBytes(bytes) > left) continue;
    status = AddRingsOf(tid, bytes);
    if (status.ok()) return status;
    DropRingsOf(tid);
    if (!IsOutOfMemory(status)) return status;
  }
  return status;
}

absl::Status SamplerImpl::AttachToRingSets(pid_t tid, bool tracking) {
  if (!active_.HasRing(tid)) {
    if (absl::Status status = AddLateRings(tid); !status.ok()) return status;
  }
  // The side band first, so that FORK records report all threads that start from now on.
  if (tracking) {
    if (absl::Status status = side_.Attach(plan_, level_, tid); !status.ok()) return status;
  }
  if (absl::Status status = active_.Attach(plan_, level_, tid, tracking); !status.ok()) return status;
  return spare_.Attach(plan_, level_, tid, tracking);
}

// Attaches the thread completely or not at all.
absl::Status SamplerImpl::AttachOne(pid_t tid, bool tracking) {
  const uint64_t now = Now(plan_.options().clock_id);
  inheritance_.AddAttached(tid, now);  // Even if it has ended by now.
  if (tracking) side_inheritance_.AddAttached(tid, now);
  const std::array<RingSet*, 3> ring_sets = {&active_, &spare_, &side_};
  std::array<size_t, 3> before{};
  for (size_t i = 0; i < ring_sets.size(); ++i) before[i] = ring_sets[i]->events.size();
  absl::Status status = AttachToRingSets(tid, tracking);
  for (size_t i = 0; i < ring_sets.size() && !status.ok(); ++i) {
    std::vector<RingEvent>& events = ring_sets[i]->events;
    events.erase(events.begin() + static_cast<ptrdiff_t>(before[i]), events.end());
  }
  return status;
}

absl::Status SamplerImpl::ExplainDescriptors(const absl::Status& status, size_t threads, size_t cpus) const {
  if (sys::ErrnoOf(status) != EMFILE) return status;
  const size_t tracking = plan_.needs_tracking() ? 1 : 0;
  size_t each = plan_.options().switches ? 1 : 0;
  for (const PlannedEvent& event : plan_.events()) each += 1 + event.followers.size();
  each = each * ring_sets() + tracking;
  const size_t rings = (plan_.rings_by_cpu() ? cpus : threads) * (ring_sets() + tracking);
  rlimit limit{};
  sys::kernel().getrlimit(RLIMIT_NOFILE, &limit);
  return absl::Status(status.code(), absl::StrFormat("%s %d threads on %d CPUs with %d events each, and %d rings, take "
                                                     "%d descriptors; the limit is %d (ulimit -n).",
                                                     std::string(status.message()), threads, cpus, each, rings,
                                                     threads * cpus * each + rings, limit.rlim_cur));
}

absl::Status SamplerImpl::OpenPoll() {
  epoll_ = sys::OwnedFd(sys::kernel().epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return absl::ErrnoToStatus(errno, "cannot make a descriptor to wait on (epoll)");
  for (const RingSet* const set : {&active_, &side_}) {
    for (const std::unique_ptr<RingSlot>& slot : set->rings) {
      if (absl::Status status = Poll(*slot); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

absl::Status SamplerImpl::Poll(const RingSlot& slot) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = slot.ring.fd();
  if (sys::kernel().epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, slot.ring.fd(), &event) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "cannot wait for a ring (epoll)");
}

// A sample with a foreign id does not say which of its event's writers wrote it. So each new writer has the earlier
// weights of the writers before it.
void SamplerImpl::Index(uint64_t since_ns) {
  const IdTable ids_before = std::exchange(ids_, {});
  const std::vector<Writer> before = std::exchange(writers_, {});
  ForEachEvent([&](const RingEvent& ring_event) {
    Writer writer{.event = ring_event.event, .tid = ring_event.tid, .id = ring_event.id, .weight = {}};
    if (const uint32_t at = ids_before.Find(ring_event.id); at != IdTable::kNone) {
      writer = before[at];
    } else if (ring_event.event != RingEvent::kTracking) {
      writer.rate = plan_.KernelRate(ring_event.event, level_);
      writer.stackless = level_.stack == 0;
      const auto same = std::ranges::find_if(
          before, [&](const Writer& other) { return other.event == ring_event.event && !other.retired; });
      const uint64_t weight = plan_.Represents(ring_event.event, level_);
      writer.weight = same != before.end() ? same->weight : SampleWeight(weight);
      writer.weight.Change(since_ns, weight);
    }
    ids_.Add(ring_event.id, static_cast<uint32_t>(writers_.size()));
    writers_.push_back(std::move(writer));
  });
  for (const Retired& retired : retired_) {
    ids_.Add(retired.id, static_cast<uint32_t>(writers_.size()));
    writers_.push_back(retired.writer);
  }
  stand_in_ = IdTable::kNone;
  bool several = false;
  for (uint32_t i = 0; i < writers_.size() - retired_.size(); ++i) {
    const uint32_t event = writers_[i].event;
    if (event == RingEvent::kTracking || !plan_.events()[event].shares_samples) continue;
    several = several || (stand_in_ != IdTable::kNone && writers_[stand_in_].event != event);
    stand_in_ = i;
  }
  if (several) stand_in_ = IdTable::kNone;
  merge_ = ring::TimeMerge();
  // The side band comes first, so that records with the same time are delivered before samples. Overwriting rings are
  // not merged.
  for (const std::unique_ptr<RingSlot>& slot : side_.rings) merge_.Add(slot->ring.reader());
  if (plan_.options().mode == RingMode::kStream) {
    for (const std::unique_ptr<RingSlot>& slot : active_.rings) merge_.Add(slot->ring.reader());
  }
  if (live_handler_ != nullptr) IndexStacks();
}

bool SamplerImpl::user_only(size_t event) const {
  return std::any_of(active_.events.begin(), active_.events.end(),
                     [&](const RingEvent& ring_event) { return ring_event.event == event && ring_event.user_only; });
}

// A forked child must not allocate or lock here.
void SamplerImpl::OnForkedChild() {
  in_forked_child_ = true;
  running_ = false;
  active_.OnForkedChild();
  spare_.OnForkedChild();
  side_.OnForkedChild();
  for (std::vector<RingEvent>* const fresh : {&fresh_, &fresh_spare_}) {
    for (RingEvent& ring_event : *fresh) ring_event.OnForkedChild();
  }
  if (live_handler_ != nullptr) live_handler_->OnForkedChild();
  epoll_.Reset();
}

}  // namespace perfkit::sample
