// Adds records to the profile. A sample's weight is SamplerRecord::weight, so the weights of all samples add up to the
// sampler's `represented`, even if stacks are missing.
//
// A sample is first a PendingSample, which has no stack. A live stack comes in a record of its own, so the sample waits
// for it in the StackMatcher. With all other kinds of stacks it is emitted at once. Emit completes a sample, and adds
// it to the profile. Times off the CPU also become samples, when OffCpu emits their spans.
#include "src/session/aggregator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "perfkit/kernel_frames.h"
#include "src/proc/disk_reads.h"
#include "src/session/blocked_look.h"
#include "src/session/merge_samples.h"
#include "src/session/pointer_stack.h"
#include "src/session/span_wait.h"
#include "src/sys/kernel.h"
#include "src/unwind/machine.h"

namespace perfkit::session {
namespace {

constexpr unsigned kPcRegister = unwind::ThisMachine::kPerf[unwind::ThisMachine::kPc];
constexpr size_t kBytesAStack = 128;     // of the profile's table and of the builder's index
constexpr size_t kBytesALocation = 420;  // the same, with its names

StackQuality QualityOf(StackEnd end, uint32_t omitted = 0) {
  if (end == StackEnd::kNoStack) return StackQuality::kLeafOnly;
  return end == StackEnd::kRoot && omitted == 0 ? StackQuality::kWhole : StackQuality::kPart;
}

}  // namespace

Aggregator::Aggregator(std::vector<ProfileEvent> events, AggregatorOptions options)
    : options_(std::move(options)),
      symbolizer_({.demangle = options_.demangle, .lines = options_.lines}),
      stacks_(builder_, symbolizer_,
              {.max_stacks = options_.memory_bytes / 2 / kBytesAStack,
               .max_locations = options_.memory_bytes / 2 / kBytesALocation}),
      threads_(builder_, options_.pid == 0 ? FindName : nullptr),
      preempted_wait_(builder_.AddWait({.preempted = true})) {
  builder_.profile().program = options_.program;
  for (ProfileEvent& event : events) builder_.AddEvent(std::move(event));
  if (options_.frames != nullptr) {
    timelines_.zones.emplace(std::move(options_.frames), builder_, threads_, options_.pid, options_.memory_bytes,
                             options_.keep);
  }
  if (options_.tasks != nullptr) {
    timelines_.tasks.emplace(std::move(options_.tasks), builder_, threads_, options_.pid, options_.memory_bytes);
  }
  // Rings that overwrite hold an unknown part of what was sampled, so no difference of two counts is one of two
  // samples.
  if (!options_.complete) followers_.Restart(FollowerValues::kNever);
  off_cpu_event_ = static_cast<uint32_t>(builder_.profile().events.size());
  if (options_.off_cpu) {
    off_cpu_event_ = builder_.AddEvent({.name = std::string(kOffCpuEvent), .unit = ProfileUnit::kNanoseconds});
  }
}

// Returns true if a record says that a thread has forked another process. That process is not sampled and has no record
// of its end, so its mappings would be kept for ever.
bool Aggregator::IsForkOfOther(const SamplerRecord& record, const SampleLayout& layout) const {
  bool is_other = false;
  if (record.type != static_cast<uint32_t>(RecordType::kFork)) return false;
  Dispatch(record, layout, Overloaded{[&](const ForkRecord& fork) { is_other = !IsOurs(fork.pid); }, [](auto&&) {}});
  return is_other;
}

// Reads the mappings of a process that is not known yet. Of a process that existed before the start there is no record
// if it could not be read then, and of all without side_band.
void Aggregator::KnowProcess(uint32_t pid) {
  if (options_.pid != 0 || !known_processes_.IsNew(pid)) return;
  if (!symbolizer_.AddProcess(static_cast<pid_t>(pid)).ok()) return;  // it has ended, or belongs to someone else
  stacks_.ForgetLocations(pid);
  if (options_.unwinder != nullptr) options_.unwinder->AddProcess(pid).IgnoreError();
}

void Aggregator::Add(const SamplerRecord& record, const SampleLayout& layout, bool dump_dropped) {
  if (IsForkOfOther(record, layout)) return;
  // From now on the same pc may be other code, so stacks that were seen before must be located again.
  if (symbolizer_.Add(record, layout)) stacks_.ForgetLocations(MappedProcess(record, layout));
  if (options_.unwinder != nullptr) options_.unwinder->Add(record, layout);
  if (record.type == static_cast<uint32_t>(RecordType::kLost)) timelines_.stolen.NoteLoss();
  // Records come in order of time, except for late ones, so the maximum is the time up to which all is known.
  // The time of a foreign sample may be from another clock, which the sampler has told.
  const uint64_t time_ns = record.foreign ? record.time_ns : layout.TimeOf(record).value_or(0);
  latest_ns_ = std::max(latest_ns_, time_ns);
  Dispatch(record, layout,
           Overloaded{[&](const Sample& sample) { AddSample(record, sample, dump_dropped); },
                      [&](const LiveStack& stack) { AddLiveStack(stack); },
                      [&](const SwitchRecord& change) { AddSwitch(change); },
                      [&](const MmapRecord& map) { AddMapping(map); },
                      [&](const ForkRecord& fork) { AddTask(fork, record.synthesized); },
                      [&](const CommRecord& comm) { AddName(comm, record.synthesized); },
                      [&](const ExitRecord& exit) { AddExit(exit); }});
}

void Aggregator::AddMapping(const MmapRecord& map) {
  if (options_.locks == nullptr || !IsOurs(map.pid) || map.data || !map.name.starts_with('/')) return;
  options_.locks->NoteMapped(map.address, map.who.time_ns.value_or(0));
}

void Aggregator::AddName(const CommRecord& comm, bool synthesized) {
  if (!IsOurs(comm.pid)) return;
  if (comm.exec || synthesized) known_processes_.Know(comm.pid);
  if (synthesized && options_.pid == 0) return threads_.Existed(comm.pid, comm.tid, comm.name);
  const uint64_t time_ns = comm.who.time_ns.value_or(latest_ns_);
  threads_.Renamed(comm.pid, comm.tid, comm.name, time_ns);
  Watch(comm.pid, comm.tid, time_ns);
}

void Aggregator::AddTask(const ForkRecord& fork, bool synthesized) {
  known_processes_.Forked(fork, synthesized);
  if (synthesized && options_.pid == 0) return;  // A COMM record with its name follows.
  threads_.Forked(fork.pid, fork.tid, fork.parent_tid, fork.time_ns);
  Watch(fork.pid, fork.tid, synthesized && start_ns_ != 0 ? start_ns_ : fork.time_ns);
}

void Aggregator::AddExit(const ExitRecord& exit) {
  const std::optional<uint32_t> thread = threads_.Exited(exit.pid, exit.tid, exit.time_ns);
  if (!thread) return;
  off_cpu_.End(*thread, exit.time_ns, [&](const OffCpuSpan& span) { AddSpan(span); });
  followers_.Forget(*thread);
  // No stack of this thread can follow.
  matcher_.End(exit.tid, [&](const PendingSample& pending, bool) { Emit(pending, {}); });
  RetireThreads();
}

void Aggregator::Watch(uint32_t pid, uint32_t tid, uint64_t time_ns) {
  if (options_.off_cpu && pid == options_.pid) off_cpu_.Begin(threads_.IndexOf(pid, tid, time_ns), tid, time_ns);
}

void Aggregator::AddSample(const SamplerRecord& record, const Sample& sample, bool dump_dropped) {
  const TaskId task = sample.task().value_or(TaskId{});
  KnowProcess(task.pid);
  // 0 would mean "merged".
  const uint64_t own_ns = record.foreign ? record.time_ns : sample.time_ns().value_or(0);
  const uint64_t time_ns = std::clamp<uint64_t>(own_ns, 1, std::max<uint64_t>(latest_ns_, 1));
  PendingSample pending;
  pending.sample = {.time_ns = time_ns,
                    .weight = record.weight,
                    .thread = threads_.IndexOf(task.pid, task.tid, time_ns),
                    .event = static_cast<uint16_t>(record.event)};
  pending.pid = task.pid;
  const uint64_t pc = sample.ip().value_or(0);
  const bool in_kernel = sample.cpu_mode() == CpuMode::kKernel;
  // A live stack begins with the pc that the thread returns to. A sample in the kernel has it in its user registers.
  pending.user_pc = in_kernel ? sample.user_registers()[kPcRegister].value_or(0) : pc;
  pending.kernel_pc = in_kernel ? pc : 0;
  if (options_.pid != 0 && IsOurs(task.pid)) pending.touched = TouchedMemory::Of(sample);
  const Words callers = KernelFrames(sample).callers();
  pending.kernel_callers.assign(callers.begin(), callers.end());
  // A foreign sample's time may be wrong: the thread may have slept then.
  if (!record.foreign) off_cpu_.Ran(pending.sample.thread, time_ns, [&](const OffCpuSpan& span) { AddSpan(span); });
  if (!record.foreign) timelines_.stolen.Ran(pending.sample.thread, time_ns);
  const auto emit = [&](const InternedStack& stack) {
    AddWithFollowers(record, sample, pending, [&](const PendingSample& one) { Emit(one, stack); });
  };
  // The last event is that of wakings (OpenSampler). Its samples are also ordinary samples of the waker.
  if (options_.wakings && record.event + 1 == options_.events.size()) AddWaking(sample, pending.sample.thread);
  if (record.event < options_.events.size() && !options_.events[record.event].stack) return emit({});
  switch (options_.stacks) {
    case CallStack::Kind::kNone:
      if (!record.full_stack) emit({});
      return;
    case CallStack::Kind::kLive:
      return AddWithFollowers(record, sample, pending, [&](const PendingSample& one) {
        matcher_.AddSample(task.tid, record.event, one, [&](const PendingSample& old, bool) { Emit(old, {}); });
      });
    case CallStack::Kind::kUserDump: {
      if (dump_dropped && record.full_stack) return;
      if (dump_dropped) {
        ++builder_.profile().accounting.dumps_dropped;
        return emit({});
      }
      const UnwoundStack stack = options_.unwinder->Unwind(sample, frames_);
      if (record.full_stack) return;  // not a sample of its own: only the unwinder keeps it
      return emit(Intern(task.pid, std::span(frames_).first(stack.frames), QualityOf(stack.end)));
    }
    case CallStack::Kind::kFramePointers:
      return emit(Intern(task.pid, FramesByPointers(sample, frames_), StackQuality::kPart));
  }
}

void Aggregator::AddWaking(const Sample& sample, uint32_t waker) {
  const std::optional<Waking> waking = options_.wakings->Parse(sample.raw());
  const std::optional<uint32_t> woken = waking ? threads_.Find(waking->tid) : std::nullopt;
  if (!woken) return;
  const Profile& profile = builder_.profile();
  off_cpu_.Woken(*woken, {.name = waking->by_interrupt ? std::string(ProfileWait::kInterrupt)
                                                       : absl::StrFormat("%s (%d)", profile.ThreadName(waker),
                                                                         profile.threads[waker].tid),
                          .at_ns = sample.time_ns().value_or(0)});
}

// Adds the sample, and one for each follower that has counted since the thread's last sample, with that as its weight.
void Aggregator::AddWithFollowers(const SamplerRecord& record, const Sample& sample, PendingSample pending,
                                  absl::FunctionRef<void(const PendingSample& sample)> add) {
  add(pending);
  const std::vector<AggregatedEvent>& events = options_.events;
  if (record.event >= events.size()) return;
  const uint32_t first = events[record.event].first_follower;
  // In the profile's table, the followers of each event come after those of the event before, and off-CPU time is last.
  const uint32_t end = record.event + 1 < events.size() ? events[record.event + 1].first_follower : off_cpu_event_;
  const std::optional<ReadValues> values = sample.read();
  if (!values || first == end) return;
  const uint64_t born_ns = builder_.profile().threads[pending.sample.thread].first_ns;
  // Value 0 is the leader's own.
  for (size_t i = 1; i < values->size() && first + i - 1 < end; ++i) {
    const ReadValues::Value value = (*values)[i];
    pending.sample.event = static_cast<uint16_t>(first + i - 1);
    pending.sample.samples = 0;
    pending.touched = {};
    pending.sample.weight = followers_.Grown(pending.sample.thread, born_ns, value.id.value_or(0), value.value);
    if (pending.sample.weight != 0) add(pending);
  }
}

void Aggregator::AddLiveStack(const LiveStack& stack) {
  const std::span<const StackFrame> frames = ends_.Take(stack, frames_);
  if (frames.empty()) return;
  const InternedStack interned = Intern(stack.pid, frames, QualityOf(stack.end, stack.omitted));
  matcher_.AddStack(stack.tid, stack.event, frames_[0].pc, [&](const PendingSample& pending, bool has_stack) {
    Emit(pending, has_stack ? interned : InternedStack{});
  });
}

InternedStack Aggregator::Intern(uint32_t pid, std::span<const StackFrame> frames, StackQuality quality) {
  InternedStack interned;
  interned.stack = stacks_.Intern(pid, frames, interned.was_cut);
  if (!frames.empty() && !interned.was_cut) interned.quality = quality;
  return interned;
}

// Adds the kernel's frames, if the sample was taken there. The user's stack is that from which the kernel was entered.
ProfileSample Aggregator::Complete(const PendingSample& pending, const InternedStack& stack) {
  ProfileSample sample = pending.sample;
  timelines_.SetUnknown(sample);
  sample.quality = stack.quality;
  sample.stack = stack.stack;
  const TouchedMemory& touched = pending.touched;
  if (touched.address != 0) sample.memory = looks_.memory.IndexOf(touched, sample.time_ns, builder_);
  bool was_cut = stack.was_cut;
  if (pending.kernel_pc != 0) {
    // A stack that was cut is a leaf, which has not called the kernel's frames.
    const std::span<const uint64_t> callers =
        stack.was_cut ? std::span<const uint64_t>() : std::span(pending.kernel_callers);
    sample.stack = stacks_.InternKernel(stack.stack, callers, pending.kernel_pc, was_cut);
    const bool is_part = stack.quality == StackQuality::kLeafOnly || callers.size() + 1 >= options_.max_chain;
    if (!callers.empty() && is_part) sample.quality = StackQuality::kPart;
    if (was_cut) sample.quality = StackQuality::kLeafOnly;
    was_cut = was_cut || stack.was_cut;
  } else if (stack.stack == ProfileStack::kRoot) {
    const StackFrame leaf{.pc = pending.user_pc};
    sample.stack = stacks_.Intern(pending.pid, std::span(&leaf, 1), was_cut);
    was_cut = false;  // nothing is missing
  }
  if (was_cut) builder_.profile().accounting.stacks_forgotten += sample.samples;
  return sample;
}

void Aggregator::Emit(const PendingSample& pending, const InternedStack& stack) {
  // Used for waits that no look finds, with StackQuality::kLastKnown.
  if (stack.stack != ProfileStack::kRoot) off_cpu_.SetLastStack(pending.sample.thread, stack.stack);
  builder_.AddSample(Complete(pending, stack));
  MergeIfFull();
}

void Aggregator::AddSwitch(const SwitchRecord& change) {
  if (!options_.off_cpu || !change.who.tid || change.who.pid != options_.pid) return;
  const uint64_t time_ns = change.who.time_ns.value_or(latest_ns_);
  const uint32_t thread = threads_.IndexOf(*change.who.pid, *change.who.tid, time_ns);
  off_cpu_.Switched(thread, *change.who.tid, time_ns, change.out, change.preempted,
                    [&](const OffCpuSpan& span) { AddSpan(span); });
}

// Waits that no sample refers to are dropped when samples are merged, so a wait is added only together with its sample.
uint32_t Aggregator::WaitOf(OffCpuSpan span) {
  if (span.preempted) span.throttled_ns = looks_.quotas.ThrottledWithin(span.from_ns, span.to_ns);
  const bool has_read = looks_.disk_reads.HasRead(span.thread, span.from_ns, span.to_ns);
  const std::optional<ProfileWait> wait = WaitOfSpan(span, has_read, builder_);
  if (!wait && span.preempter) return options_.preempters->WaitOf(*span.preempter, builder_);
  if (!wait) return span.preempted ? preempted_wait_ : ProfileSample::kNoWait;
  return builder_.AddWait(*wait);
}

void Aggregator::AddSpan(const OffCpuSpan& span) {
  if (options_.preempters != nullptr && !span.preempted && span.waker.empty()) {
    const uint32_t tid = builder_.profile().threads[span.thread].tid;
    const std::optional<Waker> waker = options_.preempters->WakerOf(tid, span.from_ns, span.to_ns);
    if (waker) return OffCpu::Split(span, *waker, [&](const OffCpuSpan& part) { AddSpan(part); });
  }
  timelines_.stolen.AddOff(span.thread, span.from_ns, span.to_ns);
  if (!span.call && !span.preempted && timelines_.zones && timelines_.zones->MarksFrames(span.thread)) {
    looks_.pace.AddMissed(span.duration_ns());
  }
  if (span.preempted && options_.preempters != nullptr) {
    return options_.preempters->Hold(span, builder_.profile().threads[span.thread].tid);
  }
  EnterSpan(span);
  MergeIfFull();
}

void Aggregator::EnterSpan(const OffCpuSpan& span) {
  ProfileSample sample{.time_ns = std::max<uint64_t>(span.from_ns, 1),
                       .weight = span.duration_ns(),
                       .thread = span.thread,
                       .stack = span.stack,
                       .wait = WaitOf(span),
                       .event = static_cast<uint16_t>(off_cpu_event_),
                       .quality = span.quality};
  timelines_.SetUnknown(sample);
  builder_.AddSample(sample);
}

// A frame that waits for a disk waits often, and briefly each time. So a thread that marks frames is looked at in each
// round, whatever its records say. The waits that are found explain the others.
void Aggregator::LookAtSleepers(uint64_t now_ns, uint64_t look_after_ns) {
  if (!options_.off_cpu) return;
  for (const OffCpu::Sleeper& sleeper : off_cpu_.ToLookAt(now_ns - std::min(now_ns, look_after_ns), now_ns)) {
    if (!LookAt(sleeper)) return looks_.pace.GiveUp();
  }
  if (!timelines_.zones) return;
  for (const OffCpu::Sleeper& watched : off_cpu_.Watched()) {
    const bool is_due = timelines_.zones->MarksFrames(watched.thread) && off_cpu_.IsDue(watched.thread, now_ns);
    if (is_due && !LookAt(watched)) return looks_.pace.GiveUp();
  }
  looks_.pace.EndRound(now_ns);
}

void Aggregator::ReadAccounts(uint64_t now_ns) {
  if (options_.off_cpu) looks_.quotas.Read();
  if (!options_.off_cpu || !timelines_.zones) return;
  for (const OffCpu::Sleeper& watched : off_cpu_.Watched()) {
    if (!timelines_.zones->MarksFrames(watched.thread)) continue;
    const std::optional<uint64_t> bytes = proc::ReadDiskBytes(static_cast<pid_t>(watched.tid));
    if (bytes) looks_.disk_reads.Add(watched.thread, now_ns, *bytes);
    timelines_.stolen.Read(watched.thread, watched.tid);
  }
}

std::optional<BlockedThread> Aggregator::LookAtThread(uint32_t tid) {
  const auto number = static_cast<pid_t>(tid);
  std::optional<BlockedThread> blocked =
      LookAtBlocked(options_.pid, looks_.files.Of(number), options_.unwinder.get(), frames_);
  if (!blocked) looks_.files.Forget(number);
  return blocked;
}

// Returns false if no thread can be looked at.
bool Aggregator::LookAt(const OffCpu::Sleeper& sleeper) {
  // The calling thread runs: its switch-in is still in the rings.
  if (sleeper.tid == static_cast<uint32_t>(sys::kernel().gettid())) return true;
  const std::optional<BlockedThread> blocked = LookAtThread(sleeper.tid);
  if (!blocked) {
    const absl::Status readable = proc::CanReadBlockedCalls();
    if (readable.ok()) return true;  // it runs again
    looks_.error = readable;
    return false;
  }
  const InternedStack stack =
      Intern(options_.pid, std::span(frames_).first(blocked->stack.frames), QualityOf(blocked->stack.end));
  off_cpu_.Looked(sleeper.thread, {.at_ns = blocked->at_ns,
                                   .times_run = blocked->times_run,
                                   .stack = stack.stack,
                                   .quality = stack.quality,
                                   .call = blocked->call,
                                   .wait = blocked->wait,
                                   .holder = LookAtHolder(*blocked, sleeper.tid)});
  return true;
}

// Returns the thread that holds the lock, and the stack where it is blocked itself. The stack is valid if the thread
// still holds the lock after the look, and has not run meanwhile. The calling thread may be the holder: it runs, so it
// gets no stack.
Holder Aggregator::LookAtHolder(const BlockedThread& waiting, uint32_t waiting_tid) {
  const uint32_t tid = waiting.holder.value_or(0);
  const std::optional<uint32_t> thread = tid != 0 ? threads_.Find(tid) : std::nullopt;
  if (!thread) return {};
  Holder holder{.thread = *thread};
  if (tid == static_cast<uint32_t>(sys::kernel().gettid())) return holder;
  const std::optional<BlockedThread> blocked = LookAtThread(tid);
  if (!blocked || !waiting.IsUnchanged(waiting_tid) || !blocked->IsUnchanged(tid)) return holder;
  const InternedStack stack =
      Intern(options_.pid, std::span(frames_).first(blocked->stack.frames), QualityOf(blocked->stack.end));
  holder.stack = stack.stack, holder.quality = stack.quality;
  return holder;
}

}  // namespace perfkit::session
