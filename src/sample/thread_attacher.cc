// Attaches threads in rounds, until a round finds no new one, because threads may start meanwhile. A thread that is
// born during a round may have inherited events from its parent and be attached itself as well; so from the second
// round on the duplicates that it may cause are expected, and FORK records are switched on to know its parent.
#include "src/sample/thread_attacher.h"

#include <errno.h>

#include <array>
#include <string>

#include "absl/strings/str_format.h"
#include "src/open/task_cpu.h"
#include "src/sys/clock.h"
#include "src/sys/kernel.h"
#include "src/sys/perf_error.h"

namespace perfkit::sample {
namespace {

// Maximum number of rounds that attach threads which started during the round before.
constexpr int kRounds = 64;

// Returns "1 thread" or "2 threads".
std::string Number(size_t number, const char* noun) {
  return absl::StrFormat("%d %s%s", number, noun, number == 1 ? "" : "s");
}

}  // namespace

absl::StatusOr<std::vector<pid_t>> ThreadsNow(const Plan& plan) {
  if (plan.whole_cpus()) return std::vector<pid_t>{RingSlot::kShared};
  if (plan.target().kind == Target::Kind::kThisThread) return std::vector<pid_t>{plan.target().id};
  const absl::StatusOr<std::vector<open::TaskCpu>> task_cpus = open::TaskCpusOf(plan.target());
  if (!task_cpus.ok()) return task_cpus.status();
  std::vector<pid_t> tids;
  for (const open::TaskCpu& task_cpu : *task_cpus) tids.push_back(task_cpu.pid);
  return tids;
}

absl::Status ThreadAttacher::AttachAll(const SamplingLevel& level, bool tracking) {
  for (int round = 0; round < kRounds; ++round) {
    bool any = false;
    if (absl::Status status = AttachRound(level, tracking, round > 0, any); !status.ok()) return status;
    if (!any || !plan_.many_threads()) return absl::OkStatus();
  }
  return absl::AbortedError(absl::StrFormat(
      "%s: threads kept starting while they were being attached, %d times over. Remedy: open the sampler before the "
      "threads start, or try again.",
      open::Describe(plan_.target()), kRounds));
}

absl::Status ThreadAttacher::AttachRound(const SamplingLevel& level, bool tracking, bool late, bool& any) {
  const absl::StatusOr<std::vector<pid_t>> threads = ThreadsNow(plan_);
  if (!threads.ok()) return threads.status();
  const size_t before = rings_.active.events.size();
  for (const pid_t tid : *threads) {
    if (duplicates_.IsAttached(tid) || (!tracking && !rings_.active.HasRing(tid))) continue;
    if (late && !any && plan_.per_cpu_rings() && plan_.target().inherit) {
      // From here on threads may have two copies of an event: FORK records are needed to know their parents.
      duplicates_.ExpectDuplicates(tracking);
      if (absl::Status status = rings_.side.SwitchAll(/*on=*/true, /*inherited=*/true); !status.ok()) return status;
    }
    any = true;
    const absl::Status status = Attach(tid, level, tracking);
    if (!status.ok() && !absl::IsNotFound(status)) {
      return ExplainDescriptors(status, threads->size(), plan_.rings_by_cpu() ? rings_.active.rings.size() : 1);
    }
    if (!status.ok() && threads->size() == 1) return status;
  }
  if (!duplicates_.expects_duplicates() || rings_.active.events.size() == before) return absl::OkStatus();
  return rings_.side.SwitchAll(/*on=*/true, /*inherited=*/true);
}

absl::Status ThreadAttacher::AttachToRingSets(pid_t tid, const SamplingLevel& level, bool tracking) {
  if (!rings_.active.HasRing(tid)) {
    if (absl::Status status = rings_.AddRingsOf(tid); !status.ok()) return status;
  }
  // The side band first: so no thread inherits events without the one whose FORK records report the threads it starts.
  if (tracking) {
    if (absl::Status status = rings_.side.Attach(plan_, level, tid); !status.ok()) return status;
  }
  if (absl::Status status = rings_.active.Attach(plan_, level, tid, tracking); !status.ok()) return status;
  return rings_.spare.Attach(plan_, level, tid, tracking);
}

absl::Status ThreadAttacher::Attach(pid_t tid, const SamplingLevel& level, bool tracking) {
  duplicates_.AddAttached(tid, sys::ClockNs(plan_.options().clock_id), tracking);  // Even if it has ended by now.
  const std::array<RingSet*, 3> ring_sets = {&rings_.active, &rings_.spare, &rings_.side};
  std::array<size_t, 3> before{};
  for (size_t i = 0; i < ring_sets.size(); ++i) before[i] = ring_sets[i]->events.size();
  absl::Status status = AttachToRingSets(tid, level, tracking);
  for (size_t i = 0; i < ring_sets.size() && !status.ok(); ++i) {
    std::vector<RingEvent>& events = ring_sets[i]->events;
    events.erase(events.begin() + static_cast<ptrdiff_t>(before[i]), events.end());
  }
  return status;
}

absl::Status ThreadAttacher::AttachNewcomer(pid_t tid, const SamplingLevel& level, bool paused) {
  const std::array<RingSet*, 2> ring_sets = {&rings_.side, &rings_.active};  // The sets whose events are enabled.
  std::array<size_t, 2> before{};
  for (size_t i = 0; i < ring_sets.size(); ++i) before[i] = ring_sets[i]->events.size();
  absl::Status status = Attach(tid, level, true);
  if (status.ok()) status = rings_.SetUpRingsOf(tid, paused);
  for (size_t i = 0; i < ring_sets.size(); ++i) {
    const std::vector<RingEvent>& events = ring_sets[i]->events;
    for (size_t ring_event = before[i]; ring_event < events.size() && status.ok(); ++ring_event) {
      status = events[ring_event].Switch(sys::kIocEnable);
    }
  }
  return status;
}

absl::Status ThreadAttacher::ExplainDescriptors(const absl::Status& status, size_t threads, size_t cpus) const {
  if (sys::ErrnoOf(status) != EMFILE) return status;
  const size_t tracking = plan_.needs_tracking() ? 1 : 0;
  size_t each = plan_.options().switches ? 1 : 0;
  for (const PlannedEvent& event : plan_.events()) each += 1 + event.followers.size();
  each = each * rings_.ring_sets() + tracking;
  const size_t rings = (plan_.rings_by_cpu() ? cpus : threads) * (rings_.ring_sets() + tracking);
  rlimit limit{};
  sys::kernel().getrlimit(RLIMIT_NOFILE, &limit);
  return absl::Status(
      status.code(),
      absl::StrFormat("%s %s on %s with %s each, and %s, take %s besides those that are open; the limit is %d "
                      "(ulimit -n).",
                      status.message(), Number(threads, "thread"), Number(cpus, "CPU"), Number(each, "event"),
                      Number(rings, "ring"), Number(threads * cpus * each + rings, "descriptor"), limit.rlim_cur));
}

}  // namespace perfkit::sample
