// Adds up the records of a sampler in a profile.
//
//   side band ──> Symbolizer (what is mapped), ThreadTable (threads, names)
//   samples ────> stack, by CallStack::Kind ──> StackTable ──> ProfileBuilder
//   live stacks ─> StackMatcher ──> the samples that waited for them
//   switches ───> OffCpu ──> samples of kOffCpuEvent
//   zones, tasks > Timelines ──> labels of samples, tracks
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "perfkit/profile_builder.h"
#include "perfkit/sampler.h"
#include "perfkit/session.h"
#include "perfkit/symbolizer.h"
#include "src/session/blocked_look.h"
#include "src/session/cpu_quotas.h"
#include "src/session/disk_reads.h"
#include "src/session/fault_memory.h"
#include "src/session/follower_values.h"
#include "src/session/given_batches.h"
#include "src/session/known_processes.h"
#include "src/session/listed_threads.h"
#include "src/session/live_ends.h"
#include "src/session/lock_records.h"
#include "src/session/look_files.h"
#include "src/session/look_pace.h"
#include "src/session/off_cpu.h"
#include "src/session/preempters.h"
#include "src/session/reductions.h"
#include "src/session/ring_keeper.h"
#include "src/session/sched_events.h"
#include "src/session/stack_hooks.h"
#include "src/session/stack_matcher.h"
#include "src/session/stack_table.h"
#include "src/session/thread_table.h"
#include "src/session/timelines.h"
#include "src/sys/max_chain.h"

namespace perfkit::session {

// An event of the sampler.
struct AggregatedEvent {
  uint32_t first_follower = 0;  // among the profile's events
  bool stack = true;            // SampledEvent::stack
};

struct AggregatorOptions {
  CallStack::Kind stacks = CallStack::Kind::kNone;
  uint32_t max_chain = sys::MaxCallChain();  // longer chains of the kernel are cut
  uint32_t pid = 0;                // the process that is sampled; 0: any
  bool off_cpu = false;            // requires `pid`
  size_t memory_bytes = 64 << 20;  // of samples and stacks
  std::vector<ListedThread> threads{};  // only these; empty: all threads
  std::string thread_name{};            // a glob pattern; empty: all threads
  std::string program{};           // Profile::program
  bool demangle = true;
  std::unique_ptr<symbolize::LineSource> (*lines)(size_t cache_bytes) = nullptr;
  bool complete = true;                   // records are lost only if rings are full; false: rings are overwritten
  std::vector<AggregatedEvent> events{};  // empty: all have stacks, and no followers
  std::optional<WakingFormat> wakings{};  // of the last event, if that is kWakingEvent
  BatchCallback on_batch{};
  std::optional<KeepFrames> keep{};                 // requires `frames`
  std::unique_ptr<count::FrameRecording> frames{};  // nullptr: no zones
  std::unique_ptr<count::TaskRecording> tasks{};    // nullptr: no tasks
  std::unique_ptr<StackUnwinder> unwinder{};        // kUserDump, and looks at blocked threads
  std::unique_ptr<LockRecords> locks{};             // nullptr: waits for locks are not recorded
  std::unique_ptr<Preempters> preempters{};         // nullptr: preempters are not known
  RingKeeper* keeper = nullptr;                     // see OnNamed
};

// What is known about waiting threads from other sources than records.
struct Looks {
  absl::Status error;    // why blocked threads could not be looked at
  DiskReads disk_reads;  // of threads that mark frames
  CpuQuotas quotas;
  LookPace pace;
  LookFiles files;
  FaultMemory memory;
};

// What was merged already.
struct Merged {
  size_t bytes = 0;             // of samples that are merged, and of kept frames
  uint64_t times_of_ended = 0;  // samples that lost their time because their thread became part of a sum
};

// An entry of the stack table, and its quality. kRoot: no stack is known.
struct InternedStack {
  uint32_t stack = ProfileStack::kRoot;
  StackQuality quality = StackQuality::kLeafOnly;
  bool was_cut = false;  // the table is full: it has the leaf alone
};

// Not thread-safe.
class Aggregator {
 public:
  Aggregator(std::vector<ProfileEvent> events, AggregatorOptions options);

  // Adds any record of the sampler. Requires that records come in order of time. `dump_dropped`: a sample whose dump was
  // dropped because unwinding is too slow.
  void Add(const SamplerRecord& record, const SampleLayout& layout, bool dump_dropped = false);

  // Sets the time from which threads that exist at the start are watched. To be called before any record is added.
  void SetStart(uint64_t start_ns);
  void SetKeeper(RingKeeper* keeper) { options_.keeper = keeper; }
  // While the sampler is being paused or stopped, records of switches may be missing, but those of threads that end are
  // not.
  void SwitchesKnownUntil(uint64_t time_ns) { off_cpu_.KnownUntil(time_ns); }
  // Between Pause and Resume there are no records of switches.
  void Pause(uint64_t now_ns);
  void Resume(uint64_t now_ns);
  // Finds out where threads are blocked, and in what, that have been off their CPU for `look_after_ns`. Skips the
  // calling thread: it runs, although its last records may still be held back.
  void LookAtSleepers(uint64_t now_ns, uint64_t look_after_ns);
  // Returns nullptr if preempters are not recorded.
  Preempters* preempters() { return options_.preempters.get(); }
  // Adds the preempted waits that were held back, with their preempters. To be called after the records of both
  // samplers were read.
  void NamePreempters();
  // Returns true if the next round of looks should come early.
  bool looks_early() const { return looks_.pace.hurries(); }
  // Reads how much the threads that mark frames have read from disks and how long they ran, and for how long CPU quotas
  // were used up. To be called before the records of their waits are added.
  void ReadAccounts(uint64_t now_ns);

  // Called after each name that was looked up, with the share that is done, from 0 to 1. Looking up names may read
  // files, and the rings fill meanwhile: with a callback, the keeper is open. Neither may call the aggregator. There is no
  // callback while a record is added, because the rings are being read then.
  using OnNamed = std::function<void(double done)>;

  // Calls on_batch with the samples that were finished since the last call.
  void GiveBatch(const OnNamed& on_named = {});

  // Reads the logs of the FrameCounter's and TaskCounter's threads. StopTimelines reads them for the last time.
  void ReadTimelines() { timelines_.Read(latest_ns_); }
  // To be called once nothing is looked at any more.
  void CloseFiles() { looks_.files.CloseAll(); }
  // Decides which of the frames that ended until `until_ns` are kept. Requires that all records until then have been
  // added. UINT64_MAX: all frames. Calls KeepFrames::on_slow_frame.
  void DecideFrames(uint64_t until_ns, const OnNamed& on_named);
  // Profiles have no zones, tasks and counters of earlier times.
  void CutTracks(uint64_t from_ns) { timelines_.from_ns = from_ns; }
  StolenTimes& stolen_times() { return timelines_.stolen; }
  void StopTimelines(uint64_t now_ns) { timelines_.Stop(now_ns); }

  // Records no more waits for locks.
  void StopLocks() {
    if (options_.locks != nullptr) options_.locks->Stop();
  }

  // Finds out which of the threads without any record are running. To be called before the last records are added.
  void FindRunning();
  // Returns the profile until `now_ns`, with names. Waits and samples under way continue. `is_last`: all records have
  // been added; each further call with the same time returns the same profile. The first one calls on_batch with the
  // last samples.
  Profile MakeProfile(uint64_t now_ns, bool is_last, const OnNamed& on_named);
  // CPU time that names have taken, also those for on_batch and on_slow_frame. The caller adds what tables take.
  uint64_t naming_cpu_ns() const { return named_.cpu_ns; }
  void set_naming_cpu_ns(uint64_t cpu_ns) { named_.cpu_ns = cpu_ns; }
  // Returns how much was dropped until now because there is too much of it. KeepFrames drops most samples and zones
  // anyway.
  Reductions::Counts Reduced() const {
    const ProfileAccounting& accounting = builder_.profile().accounting;
    return {.times = options_.keep ? 0 : accounting.times_forgotten - merged_.times_of_ended,
            .dumps = accounting.dumps_dropped,
            .stacks = accounting.stacks_forgotten,
            .addresses = stacks_.replaced(),
            .zones = timelines_.zones && !options_.keep ? timelines_.zones->forgotten() : 0,
            .task_parts = timelines_.tasks ? timelines_.tasks->forgotten() : 0,
            .threads = threads_.retired()};
  }
  // The modules in which names were looked up.
  std::vector<SymbolizedModule> modules() const { return symbolizer_.Modules(); }
  // A profile of what the rings of a flight recorder held, up to `to_ns`, was made: drops all samples. The next profile
  // begins at `from_ns`.
  void Restart(uint64_t from_ns, uint64_t to_ns);

 private:
  bool IsOurs(uint32_t pid) const { return options_.pid == 0 || pid == options_.pid; }
  bool IsForkOfOther(const SamplerRecord& record, const SampleLayout& layout) const;
  void KnowProcess(uint32_t pid);
  void AddMapping(const MmapRecord& map);
  void AddName(const CommRecord& comm, bool synthesized);
  void AddSample(const SamplerRecord& record, const Sample& sample, bool dump_dropped);
  void AddWithFollowers(const SamplerRecord& record, const Sample& sample, PendingSample pending,
                        absl::FunctionRef<void(const PendingSample& sample)> add);
  void AddWaking(const Sample& sample, uint32_t waker);
  void AddLiveStack(const LiveStack& stack);
  void AddSwitch(const SwitchRecord& change);
  void AddSpan(const OffCpuSpan& span);
  void EnterSpan(const OffCpuSpan& span);
  uint32_t WaitOf(OffCpuSpan span);
  bool LookAt(const OffCpu::Sleeper& sleeper);
  Holder LookAtHolder(const BlockedThread& waiting, uint32_t waiting_tid);
  ProfileSample Complete(const PendingSample& pending, const InternedStack& stack);
  void Emit(const PendingSample& pending, const InternedStack& stack);
  InternedStack Intern(uint32_t pid, std::span<const StackFrame> frames, StackQuality quality);
  // LookAtBlocked with files that are kept open.
  std::optional<BlockedThread> LookAtThread(uint32_t tid);
  void AddTask(const ForkRecord& fork, bool synthesized);
  void AddExit(const ExitRecord& exit);
  void Watch(uint32_t pid, uint32_t tid, uint64_t time_ns);
  void ExplainLocks(size_t first_sample);
  void MergeIfFull();
  void MergeUnkept();
  void MakeRoom();
  bool IsKept(const KeptTimes& times, const ProfileSample& sample) const;
  void GiveSlowFrame(const EndedFrame& frame, const OnNamed& on_named);
  void RetireThreads();
  void CountMerged();
  void GiveBatch(std::span<const ProfileSample> samples, const OnNamed& on_named);
  std::vector<ProfileSample> SamplesUnderWay();
  uint64_t InOtherAddresses(std::span<const ProfileSample> samples) const;
  std::vector<std::string> Notes() const;
  void Resolve(const OnNamed& on_named);

  AggregatorOptions options_;
  ProfileBuilder builder_;
  Symbolizer symbolizer_;
  StackTable stacks_;
  ThreadTable threads_;
  StackMatcher matcher_;
  OffCpu off_cpu_;
  KnownProcesses known_processes_;
  FollowerValues followers_;
  Looks looks_;
  Timelines timelines_;
  // Of the current stack: a dump of 60 KiB has at most 7,680 frames, a live stack 7,900 and StackTable::kLeftOut.
  std::vector<StackFrame> frames_ = std::vector<StackFrame>(8192);
  uint32_t preempted_wait_;  // shared by all preempted spans without a known preempter
  uint32_t off_cpu_event_ = 0;
  uint64_t start_ns_ = 0;
  uint64_t latest_ns_ = 0;         // of any record
  Merged merged_;
  LiveEnds ends_;
  GivenBatches given_;
  struct {
    size_t locations = 0;  // whose names were looked up
    uint64_t cpu_ns = 0;   // naming_cpu_ns
  } named_;
};

}  // namespace perfkit::session
