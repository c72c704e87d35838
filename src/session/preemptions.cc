// A thread of this process that leaves its CPU, but could run on, is absent until a record says that it runs again. An
// absence has the threads that ran on that CPU meanwhile, with their times: each switch there adds the thread that ran
// until then. So the switches themselves are not kept.
//
// The kernel writes the record of the tracepoint before the SWITCH record of the same switch: when a thread leaves its
// CPU as well as when it is back (__schedule and context_switch of kernel/sched/core.c). Find relies on this order:
// times alone would not tell two short absences apart.
//
// If the thread that leaves a CPU is not the one that was switched in there last, a switch of that CPU has no record.
// Other CPUs' records are complete then: on some virtual machines no tracer sees certain threads leave their CPU (seen
// with Linux 6.18, in tracefs, too). So only the waits of that CPU are given up.
#include "src/session/preemptions.h"

#include <algorithm>
#include <utility>

namespace perfkit::session {

void Preemptions::Drop(uint32_t tid) {
  const auto found = absent_.find(tid);
  if (found == absent_.end()) return;
  std::erase(cpus_[found->second.cpu].absent, tid);
  absent_.erase(found);
}

void Preemptions::Lose() {
  absent_.clear();
  cpus_.clear();
}

// An absent thread that came to this CPU without a record is dropped when it leaves the CPU.
void Preemptions::LoseCpu(Cpu& cpu) {
  for (const uint32_t tid : std::exchange(cpu, {}).absent) absent_.erase(tid);
}

// The thread that leaves the CPU has run there since the switch before.
void Preemptions::AddRunner(Cpu& cpu, const CpuSwitch& change) {
  const uint64_t ns = change.time_ns - std::min(change.time_ns, cpu.since_ns);
  if (change.from_pid != CpuSwitch::kEnded) cpu.running.is_own = change.from_pid == pid_;
  for (const uint32_t tid : cpu.absent) {
    std::vector<Runner>& runners = absent_.at(tid).runners;
    const auto same = std::ranges::find_if(runners, [&](const Runner& one) { return one.who.tid == cpu.running.tid; });
    if (same == runners.end()) {
      runners.push_back({cpu.running, ns});
    } else {
      same->ns += ns;
    }
  }
}

void Preemptions::EndAbsence(const CpuSwitch& change) {
  const auto found = absent_.find(change.to_tid);
  if (found == absent_.end()) return;
  Absence absence = std::move(found->second);
  Drop(change.to_tid);
  absence.in_ns = change.time_ns;
  absence.has_moved = absence.cpu != change.cpu;
  if (absence.has_moved && absence.runners.empty()) {
    // The thread that got its CPU first still runs there.
    const Cpu& old = cpus_[absence.cpu];
    if (!old.is_known) return;
    absence.runners.push_back({old.running, 0});
  }
  ended_[change.to_tid].push_back(std::move(absence));
}

void Preemptions::Add(const CpuSwitch& change) {
  Cpu& cpu = cpus_[change.cpu];
  if (cpu.is_known && cpu.running.tid != change.from_tid) LoseCpu(cpu);
  if (cpu.is_known) AddRunner(cpu, change);
  EndAbsence(change);
  Drop(change.from_tid);
  if (change.from_pid == pid_ && change.is_preempted) {
    absent_[change.from_tid] = {.out_ns = change.time_ns, .cpu = change.cpu};
    cpu.absent.push_back(change.from_tid);
  }
  cpu.running = {.tid = change.to_tid, .name = std::string(change.to_name)};
  cpu.since_ns = change.time_ns;
  cpu.is_known = true;
}

void Preemptions::Forget(uint64_t until_ns) {
  for (auto thread = ended_.begin(); thread != ended_.end();) {
    std::deque<Absence>& absences = thread->second;
    while (!absences.empty() && absences.front().in_ns < until_ns) absences.pop_front();
    thread = absences.empty() ? ended_.erase(thread) : std::next(thread);
  }
}

std::optional<Preempter> Preemptions::Find(const Wait& wait) const {
  const auto thread = ended_.find(wait.tid);
  if (thread == ended_.end()) return std::nullopt;
  const auto is_before = [](const Absence& absence, uint64_t time_ns) { return absence.out_ns <= time_ns; };
  const auto next = std::lower_bound(thread->second.begin(), thread->second.end(), wait.from_ns, is_before);
  if (next == thread->second.begin()) return std::nullopt;
  const Absence& absence = *std::prev(next);
  const bool is_same =
      absence.out_ns >= wait.ran_from_ns && absence.in_ns > wait.from_ns && absence.in_ns <= wait.to_ns;
  if (!is_same || absence.runners.empty()) return std::nullopt;
  if (absence.has_moved) return absence.runners.front().who;
  const auto most = std::ranges::max_element(absence.runners, {}, [](const Runner& runner) { return runner.ns; });
  Preempter preempter = most->who;
  const auto is_other = [&](const Runner& runner) { return runner.who.tid != 0 && runner.who.tid != preempter.tid; };
  preempter.others = static_cast<uint32_t>(std::ranges::count_if(absence.runners, is_other));
  return preempter;
}

}  // namespace perfkit::session
