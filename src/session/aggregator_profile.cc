// Merges samples when there are too many, hands them out in batches, names them, and copies them into profiles.
//
// The order matters. Labels are found by a sample's time, so they are set before merging removes it. A batch has each
// sample once, so samples are handed out before they are merged. Looking up names reads files, so it is done only for
// what is handed out.
#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "perfkit/slow_frames.h"
#include "src/session/aggregator.h"
#include "src/session/cpu_time.h"
#include "src/session/drop_threads.h"
#include "src/session/lock_waits.h"
#include "src/session/merge_samples.h"
#include "src/session/running_threads.h"
#include "src/session/whole_frames.h"
#include "src/sys/clock.h"

namespace perfkit::session {
namespace {

constexpr uint64_t kLateSampleNs = 1'000'000'000;  // an off-CPU sample may come this long after its lock's record
constexpr size_t kBytesAWait = sizeof(ProfileWait) + 192;  // with its text, in the profile and in the builder's index

size_t BytesOf(const Profile& profile) {
  return profile.samples.size() * sizeof(ProfileSample) + profile.waits.size() * kBytesAWait;
}

size_t BytesOfMerged(const Profile& profile) {
  const auto first_single =
      std::partition_point(profile.samples.begin(), profile.samples.end(), [](const auto& s) { return s.merged(); });
  return static_cast<size_t>(first_single - profile.samples.begin()) * sizeof(ProfileSample);
}

}  // namespace

// Adds what perfkit::locks has recorded to the off-CPU samples from index `first_sample` on that are single (not
// merged). The record of a lock may come after the sample of the wait for it, so some samples need a second call.
void Aggregator::ExplainLocks(size_t first_sample) {
  if (options_.locks == nullptr) return;
  LockRecords& locks = *options_.locks;
  locks.Read();
  const bool is_full = locks.bytes() > options_.memory_bytes / 8;
  locks.Explain(builder_, {.first = is_full ? 0 : first_sample,
                           .first_whole = options_.on_batch ? given_.samples : 0,
                           .off_cpu_event = off_cpu_event_,
                           .preempted_wait = preempted_wait_});
  if (is_full) locks.Forget(latest_ns_ - std::min(latest_ns_, kLateSampleNs));
}

// Bounds the memory of a program that keeps starting threads.
void Aggregator::RetireThreads() {
  const std::vector<uint32_t> renamed = threads_.Retire();
  if (renamed.empty()) return;
  const auto is_retired = [&](uint32_t thread) { return thread < renamed.size() && renamed[thread] != thread; };
  // New threads get the indexes of retired ones. Before that, everything that holds such an index must be finished, or
  // moved to the index of the sum: samples that wait, labels, times, the samples of the profile.
  matcher_.EmitIf([&](const PendingSample& pending) { return is_retired(pending.sample.thread); },
                  [&](const PendingSample& pending, bool) { Emit(pending, {}); });
  if (options_.preempters != nullptr) options_.preempters->Read();
  NamePreempters();
  Profile& profile = builder_.profile();
  timelines_.Label(profile.samples);
  timelines_.Retire(renamed);
  for (uint32_t i = 0; i < renamed.size(); ++i) {
    if (!is_retired(i)) continue;
    const OffCpu::Times times = off_cpu_.TimesOf(i);
    profile.threads[renamed[i]].on_ns += times.on_ns;
    profile.threads[renamed[i]].off_ns += times.off_ns;
    off_cpu_.Forget(i);
    looks_.disk_reads.Forget(i);
  }
  off_cpu_.RenameHolders(renamed);
  GiveBatch();
  const uint64_t without_time = profile.accounting.times_forgotten;
  MergeThreads(profile, renamed, preempted_wait_);
  merged_.times_of_ended += profile.accounting.times_forgotten - without_time;
  CountMerged();
}

// If the samples take too much memory, merges the older half of them, or with KeepFrames those that no frame keeps, by
// thread, event, stack, label, task and quality. If merged samples take half of the room,
// the lightest of them lose their stacks. Merging sorts all samples, so it must be rare: a share of the room is always
// left for single samples.
void Aggregator::MergeIfFull() {
  Profile& profile = builder_.profile();
  // Half of memory_bytes is for samples. Stacks and locations have limits of their own (Aggregator's constructor).
  const bool keeps = timelines_.keeps_frames();
  const size_t least = merged_.bytes + std::max(merged_.bytes / 2, options_.memory_bytes / (keeps ? 16 : 8));
  if (BytesOf(profile) <= std::max(keeps ? 0 : options_.memory_bytes / 2, least)) return;
  timelines_.Label(profile.samples);
  ExplainLocks(0);
  GiveBatch();
  if (keeps) {
    MergeUnkept();
  } else {
    MergeOldest(profile, preempted_wait_);
  }
  MergeLightest(profile, options_.memory_bytes / 4 / sizeof(ProfileSample),
                [this](uint32_t stack) { return stacks_.InternOther(stack); });
  CountMerged();
}

bool Aggregator::IsKept(const KeptTimes& times, const ProfileSample& sample) const {
  const uint64_t ns = sample.event == off_cpu_event_ ? sample.weight : 0;
  return times.Overlaps(sample.thread, sample.time_ns, sample.time_ns + ns);
}

// Merges the samples that no frame keeps. If that is not enough, also gives up some of the frames.
void Aggregator::MergeUnkept() {
  Profile& profile = builder_.profile();
  const auto merge = [&] {
    timelines_.zones->keeper()->Release();
    const KeptTimes times = timelines_.zones->Times();
    MergeSamples(profile, preempted_wait_, [&](const ProfileSample& sample) { return !IsKept(times, sample); });
  };
  merge();
  const size_t merged = BytesOfMerged(profile), half = options_.memory_bytes / 2;
  const size_t room = std::max(half - std::min(half, merged), options_.memory_bytes / 8);
  while (BytesOf(profile) - BytesOfMerged(profile) > room && timelines_.zones->keeper()->released_ns() < latest_ns_) {
    MakeRoom();
    merge();
  }
}

// Gives up single samples: those of kept frames, or those of the older half of the times that are not released, i.e.
// for which it is not decided yet which frames are kept; whichever are more.
void Aggregator::MakeRoom() {
  FrameKeeper& keeper = *timelines_.zones->keeper();
  std::vector<uint64_t> unreleased_ns;
  size_t singles = 0;
  for (const ProfileSample& sample : builder_.profile().samples) {
    singles += sample.merged() ? 0 : 1;
    if (!sample.merged() && sample.time_ns >= keeper.released_ns()) unreleased_ns.push_back(sample.time_ns);
  }
  if (unreleased_ns.size() * 2 < singles && keeper.DropHalf()) return;
  if (unreleased_ns.empty()) return keeper.ReleaseUntil(latest_ns_);
  const auto middle = unreleased_ns.begin() + static_cast<ptrdiff_t>(unreleased_ns.size() / 2);
  std::nth_element(unreleased_ns.begin(), middle, unreleased_ns.end());
  keeper.ReleaseUntil(*middle + 1);
}

void Aggregator::CountMerged() {
  builder_.CompactStrings();  // of dropped waits and threads
  if (options_.preempters != nullptr) options_.preempters->ForgetWaits();
  looks_.memory.ForgetIndexes();
  const Profile& profile = builder_.profile();
  // All were handed out before they were merged.
  given_.samples = profile.samples.size();
  const bool keeps = timelines_.keeps_frames();
  merged_.bytes = keeps ? BytesOf(profile) : BytesOfMerged(profile);
}

void Aggregator::DecideFrames(uint64_t until_ns, const OnNamed& on_named) {
  if (!timelines_.zones) return;
  given_.slow_frames_withheld +=
      timelines_.zones->Decide(until_ns, [&](const EndedFrame& frame) { GiveSlowFrame(frame, on_named); });
}

// While the callback runs, the builder's profile has only the frame's samples and zones. So all indexes stay valid.
void Aggregator::GiveSlowFrame(const EndedFrame& frame, const OnNamed& on_named) {
  if (!options_.keep->on_slow_frame || given_.slow_frame_threw) return;
  ExplainLocks(0);
  Resolve(on_named);
  Profile& profile = builder_.profile();
  const KeptTimes times = timelines_.zones->TimesOf(frame);
  std::vector<ProfileSample> samples;
  for (const ProfileSample& sample : profile.samples) {
    if (!sample.merged() && IsKept(times, sample)) samples.push_back(sample);
  }
  timelines_.Label(samples);
  std::stable_sort(samples.begin(), samples.end(), [](const auto& a, const auto& b) { return a.time_ns < b.time_ns; });
  samples.swap(profile.samples);
  const size_t strings = profile.strings.size();
  timelines_.AddTo(profile, start_ns_, frame.to_ns, times);
  profile.from_ns = start_ns_, profile.to_ns = frame.to_ns;
  profile.realtime_offset_ns = sys::RealtimeOffsetNs();
  const auto zone = std::find_if(profile.zones.begin(), profile.zones.end(), [&](const ProfileZone& one) {
    return one.is_frame && one.thread == timelines_.zones->ThreadOf(frame) && one.from_ns == frame.from_ns &&
           one.to_ns == frame.to_ns;
  });
  if (zone != profile.zones.end() && zone->is_whole) {
    ++given_.slow_frames;
    KeepProvenHolders(profile, profile.samples);
    FindHolderStacks(profile);
    const SlowFrame slow = ExplainFrame(profile, static_cast<uint32_t>(zone - profile.zones.begin()));
    given_.slow_frame_threw = !options_.keep->on_slow_frame({profile, slow});
  } else if (frame.from_ns < start_ns_) {
    ++given_.slow_frames_begun_before;
  } else {
    ++given_.slow_frames_in_part;
  }
  samples.swap(profile.samples);
  profile.zones.clear();
  profile.counters.clear();
  profile.task_parts.clear();
  profile.strings.resize(strings);
}

void Aggregator::GiveBatch(const OnNamed& on_named) {
  ExplainLocks(given_.samples);
  std::vector<ProfileSample>& samples = builder_.profile().samples;
  if (options_.on_batch) timelines_.Label(std::span(samples).subspan(given_.samples));
  GiveBatch(std::span(samples).subspan(given_.samples), on_named);
  given_.samples = samples.size();
}

void Aggregator::GiveBatch(std::span<const ProfileSample> samples, const OnNamed& on_named) {
  // A callback that threw may have left its own data half done: it is not called again.
  if (samples.empty() || !options_.on_batch || given_.threw) return;
  Resolve(on_named);
  KeepProvenHolders(builder_.profile(), samples);
  ++given_.batches;
  given_.threw = !options_.on_batch({builder_.profile(), samples});
}

// Returns the samples whose stacks may still come, without stacks.
std::vector<ProfileSample> Aggregator::SamplesUnderWay() {
  std::vector<ProfileSample> samples;
  matcher_.ForEach([&](const PendingSample& pending) { samples.push_back(Complete(pending, {})); });
  return samples;
}

uint64_t Aggregator::InOtherAddresses(std::span<const ProfileSample> samples) const {
  uint64_t sum = 0;
  for (const ProfileSample& sample : samples) {
    if (sample.stack != ProfileStack::kRoot && stacks_.EndsInOther(sample.stack)) sum += sample.samples;
  }
  return sum;
}

std::vector<std::string> Aggregator::Notes() const {
  std::vector<std::string> notes;
  if (off_cpu_.missed() != 0) {
    notes.push_back(absl::StrFormat(
        "%d records of context switches are missing: times on and off the CPU are wrong there", off_cpu_.missed()));
  }
  if (threads_.retired() != 0) {
    notes.push_back(absl::StrFormat(
        "%d threads that ended early are summed up by name, without the times of their samples", threads_.retired()));
  }
  given_.AddNotes(options_.keep && options_.keep->on_slow_frame, notes);
  for (const std::string& name : timelines_.zones ? timelines_.zones->UnusedRanks() : std::vector<std::string>{}) {
    notes.push_back(
        absl::StrFormat("no frame is kept by '%s' (KeepFrames::worst_by): none had time in such a zone, or "
                        "a count of such an event",
                        name));
  }
  if (timelines_.tasks && timelines_.tasks->refused_threads() != 0) {
    notes.push_back(
        absl::StrFormat("which tasks ran on %d threads is not known, and their samples have none: "
                        "TaskOptions::max_threads",
                        timelines_.tasks->refused_threads()));
  }
  ends_.AddNotes(notes);
  timelines_.pauses.AddNotes(notes, timelines_.from_ns);
  if (options_.locks != nullptr && options_.locks->lost() != 0) {
    notes.push_back(absl::StrFormat("%d waits for locks have no record: the buffer of perfkit::locks was full",
                                    options_.locks->lost()));
  }
  if (!looks_.error.ok()) {
    notes.push_back(
        absl::StrFormat("where threads are blocked, and in what, is not known everywhere: %s", looks_.error.message()));
  }
  return notes;
}

void Aggregator::FindRunning() {
  const std::vector<OffCpu::Sleeper> unknown = off_cpu_.Unknown();
  std::vector<pid_t> tids;
  for (const OffCpu::Sleeper& thread : unknown) tids.push_back(static_cast<pid_t>(thread.tid));
  const std::vector<bool> on_cpu = AreOnCpu(tids);
  for (size_t i = 0; i < unknown.size(); ++i) off_cpu_.SeenRunning(unknown[i].thread, on_cpu[i]);
}

Profile Aggregator::MakeProfile(uint64_t now_ns, bool is_last, const OnNamed& on_named) {
  timelines_.Read(now_ns);
  if (is_last) {
    off_cpu_.CutAt(now_ns, true, [&](const OffCpuSpan& span) { AddSpan(span); });
    NamePreempters();
    matcher_.EmitIf([](const PendingSample&) { return true; },
                    [&](const PendingSample& pending, bool) { Emit(pending, {}); });
  }
  ExplainLocks(0);
  // Waits that are not over are added, up to now, to this profile only: in the builder they would be cut in two.
  const size_t samples = builder_.profile().samples.size(), waits = builder_.profile().waits.size();
  OffCpu until_now = off_cpu_;
  until_now.CutAt(now_ns, is_last, [&](const OffCpuSpan& span) { EnterSpan(span); });
  const uint64_t stacks_forgotten = builder_.profile().accounting.stacks_forgotten;
  std::vector<ProfileSample> under_way = SamplesUnderWay();
  timelines_.Label(builder_.profile().samples);
  timelines_.Label(under_way);
  if (is_last) GiveBatch(on_named);
  Resolve(on_named);
  // A copy, because the builder continues with its own.
  Profile profile = builder_.profile();
  builder_.profile().samples.resize(samples);
  builder_.profile().waits.resize(waits);
  builder_.profile().accounting.stacks_forgotten = stacks_forgotten;  // those under way are counted once they are over
  if (options_.preempters != nullptr) {
    options_.preempters->ForgetWaits();
    options_.preempters->AddAccounting(profile.accounting);
  }
  profile.samples.insert(profile.samples.end(), under_way.begin(), under_way.end());
  if (timelines_.keeps_frames()) {
    timelines_.zones->keeper()->Release();
    const KeptTimes times = timelines_.zones->Times();
    MergeSamples(profile, preempted_wait_, [&](const ProfileSample& sample) { return !IsKept(times, sample); });
  }
  std::stable_sort(profile.samples.begin(), profile.samples.end(),
                   [](const ProfileSample& a, const ProfileSample& b) { return a.time_ns < b.time_ns; });
  profile.accounting.addresses_forgotten = InOtherAddresses(profile.samples);
  KeepProvenHolders(profile, profile.samples);
  FindHolderStacks(profile);
  profile.accounting.notes = Notes();
  for (uint32_t i = 0; i < profile.threads.size(); ++i) {
    const OffCpu::Times times = until_now.TimesOf(i);
    profile.threads[i].on_ns += times.on_ns, profile.threads[i].off_ns += times.off_ns;
  }
  timelines_.AddTo(profile, start_ns_, now_ns, timelines_.Times());
  if (timelines_.zones && !timelines_.keeps_frames()) {
    MarkWholeFrames(profile, timelines_.zones->ZonesKnownFrom(profile.threads.size()));
  }
  KeepThreads(profile, {.unused = threads_.unused(), .listed = threads_.listed(), .name = options_.thread_name});
  return profile;
}

void Aggregator::Restart(uint64_t from_ns, uint64_t to_ns) {
  Profile& profile = builder_.profile();
  matcher_.Clear();
  followers_.Restart(FollowerValues::kNever);
  timelines_.Restart(from_ns, to_ns);
  profile.samples.clear();
  merged_ = {};
  given_.samples = 0;
  // The wait that all preempted spans share was added first, and stays.
  profile.waits.resize(preempted_wait_ + 1);
  profile.memory.clear();
  looks_.memory.ForgetIndexes();
  profile.accounting = {};
}

void Aggregator::NamePreempters() {
  if (options_.preempters == nullptr) return;
  Profile& profile = builder_.profile();
  profile.accounting.switches_read = options_.preempters->switches();
  options_.preempters->Release(profile, [&](const OffCpuSpan& span) {
    EnterSpan(span);
    MergeIfFull();
  });
}

// Listed threads have rows before any record: so each is told from a later thread with the same tid.
void Aggregator::SetStart(uint64_t start_ns) {
  start_ns_ = start_ns;
  if (timelines_.keeps_frames()) timelines_.zones->keeper()->SetStart(start_ns);
  for (const ListedThread& thread : options_.threads) threads_.List(options_.pid, thread.tid, thread.name, start_ns);
}

void Aggregator::Resume(uint64_t now_ns) {
  off_cpu_.Resume(now_ns);
  timelines_.stolen.Restart();
  timelines_.pauses.End(now_ns);
  followers_.Restart(now_ns);
}

void Aggregator::Pause(uint64_t now_ns) {
  timelines_.pauses.Begin(now_ns);
  off_cpu_.Pause(now_ns, [&](const OffCpuSpan& span) { AddSpan(span); });
}

// Names the locations that have no calls yet, and the locks.
void Aggregator::Resolve(const OnNamed& on_named) {
  const CpuTime cpu_time(named_.cpu_ns);
  if (options_.locks != nullptr) options_.locks->AddNames(builder_);
  const std::span<const CodeLocation> locations = std::span(stacks_.code_locations()).subspan(named_.locations);
  const size_t first = std::exchange(named_.locations, stacks_.code_locations().size());
  const KeptRings kept(on_named && !locations.empty() ? options_.keeper : nullptr);
  std::vector<ProfileCall> calls;
  symbolizer_.ResolveAll(locations, [&](const ResolvedLocation& resolved) {
    const auto location = static_cast<uint32_t>(first + resolved.index);
    calls.clear();
    for (const SourceFrame& frame : resolved.frames) {
      if (frame.function.empty() && !frame.inlined && resolved.symbol.function.empty()) continue;
      calls.push_back({.function = builder_.String(frame.function),
                       .file = builder_.String(frame.file),
                       .line = frame.line,
                       .inlined = frame.inlined});
    }
    if (!stacks_.HasOwnName(location)) builder_.SetCalls(location, calls);
    const CodeLocation& code = locations[resolved.index];
    builder_.profile().locations[location].module =
        code.known() ? builder_.Module(resolved.symbol.module, symbolizer_.BuildId(code)) : ProfileLocation::kNoModule;
    if (on_named) on_named(static_cast<double>(resolved.done) / static_cast<double>(locations.size()));
    return true;
  });
}

}  // namespace perfkit::session
