// A profiling session: start, work, stop, look.
//
//   auto session = perfkit::Session::Start({.interval = std::chrono::milliseconds(1)});
//   Work();
//   perfkit::Profile profile = *session->Stop();
//   fputs(perfkit::FormatReport(profile).c_str(), stdout);                 // report.h
//   absl::Status written = perfkit::WriteProfile(profile, "work.pb.gz");   // profile_writer.h
//
// Samples all threads of this process, with complete stacks if perfkit::dwarf is linked and the kernel permits them.
// The session owns a thread, "perfkit-session", which drains and aggregates; or the caller's own loop does that. Beside
// the former, with RingMode::kStream, a second thread, "perfkit-rings", empties the rings while names are looked up.
#pragma once

#include "perfkit/detail/library_only.h"

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "perfkit/keep_frames.h"
#include "perfkit/profile.h"
#include "perfkit/sampler_options.h"
#include "perfkit/session_batch.h"
#include "perfkit/session_callback.h"

namespace perfkit {

class FrameCounter;
class TaskCounter;

namespace session {
class Impl;
}

// How a session takes stacks.
enum class SessionStacks : uint8_t {
  kBest,           // kLive if perfkit::dwarf is linked and the kernel permits it, else kDumps, kFramePointers or kNone.
  kLive,           // Each thread walks its own stack when it is sampled (CallStack::Live). Stop it before an exec.
  kDumps,          // Copies of the stack, unwound and stitched when the rings are drained (CallStack::UserDump).
  kFramePointers,  // The kernel follows frame pointers. Stacks are short or wrong if code has none.
  kNone,           // The sampled instruction alone.
};

// Which time a session measures.
enum class SessionClock : uint8_t {
  kCpu,   // Time on a CPU.
  kWall,  // Also time off the CPU: the event kOffCpuEvent, with what each thread waited for.
};

struct SessionOptions {
  // Time between two samples of a thread, in CPU time: 10 us to 10 s.
  std::chrono::nanoseconds interval = std::chrono::milliseconds(1);
  // What to sample instead of the CPU clock, as SamplerOptions::events; `interval` must be in range, but has no effect.
  //
  // Each follower becomes an event of the profile, after all of these, with a name such as "page-faults at cpu-clock".
  // The weight of its samples is its count on the sample's thread and CPU since the previous sample. No sample includes
  // counts after a thread's last sample or during a pause, or (kOverwrite) before its first sample.
  std::vector<SampledEvent> events{};
  // kWall requires RingMode::kStream. A flight recorder reads SWITCH records at a snapshot only, too late to examine a
  // sleeping thread; and the rings of different CPUs go back to different times, so the times of a thread that migrates
  // would not add up.
  SessionClock clock = SessionClock::kCpu;
  SessionStacks stacks = SessionStacks::kBest;
  // kStream: profiles everything from Start to Stop. kOverwrite: a flight recorder; Snapshot and Stop return what the
  // rings still hold since the last Snapshot. Each CPU has a ring of its own, and their times differ: all CPUs go back
  // to ProfileAccounting::whole_from_ns, some further.
  RingMode mode = RingMode::kStream;
  // kOverwrite: profiles have no samples, frames, zones, tasks and counts that are older than this when the profile is
  // made; 0 means no limit. They go back less far if `memory_bytes` is too small for that time:
  // ProfileAccounting::whole_from_ns.
  std::chrono::nanoseconds keep_last{0};
  // 0: 64 MiB with kStream, 8 MiB with kOverwrite.
  //
  // kOverwrite: maximum for all rings together, including the side band's and the second set of rings, to which
  // Snapshot switches. Rings have the largest equal sizes, a power of two, with which they fit; a note says which. With
  // 2 CPUs and 8 MiB each holds 1 MiB of records, with 64 CPUs 32 KiB: of each CPU's samples without stacks about
  // 20,000 or 600, of dumped stacks (16 KiB) 60 or 2. The tables of the profile take up to twice as much in addition.
  //
  // kStream: samples, distinct stacks and distinct addresses may each take half of this, so 1.5 times memory_bytes
  // together. When samples exceed their half, the oldest are merged (ProfileSample::merged); when the merged ones exceed
  // a quarter of memory_bytes, the lightest keep only their module. When stacks exceed their half, new ones are cut to
  // their leaf (ProfileAccounting::stacks_forgotten). When addresses exceed theirs, a leaf at a new one becomes the
  // "[other addresses]" of its module (addresses_forgotten). Records that wait for slow unwinding may take a quarter;
  // when their dumps exceed an eighth, samples lose their dump, but not their weight (dumps_dropped). Totals stay exact.
  // A note says when each of these began.
  size_t memory_bytes = 0;
  // CPU budget, as a fraction of one CPU (SamplerOptions::cpu_budget); 0 disables it. No effect with kOverwrite.
  double cpu_budget = 0;
  // Samples user space only, even if more is permitted.
  bool user_only = false;
  // The profile has only these threads of this process, by their tids (gettid); empty means all. Each must exist when
  // Session::Start is called, and may end later: a thread that gets its tid then is another one. All threads are
  // sampled, because names and stacks need the mappings that any thread makes: the accounting includes all, and a note
  // says how many samples were left out.
  std::vector<pid_t> threads{};
  // fnmatch(3) pattern: the profile has only threads whose last name matches; "" means all. With `threads`, it has those
  // for which both are true. The accounting and the note are as for `threads`.
  std::string thread_name{};
  // Stops sampling after this time; Stop() still returns the profile. 0 means no limit.
  std::chrono::nanoseconds stop_after{0};
  // Stops sampling once no thread of the process, apart from the session's, has run or waited for a CPU for this long:
  // threads that sleep, or wait for disks, locks or input, are idle. A note says so. The same for both clocks, and in a
  // pause. The session's thread looks once in this time, so sampling ends after one to two times as long; a look reads
  // two files of each thread, in 10 us. Requires `own_thread`. 0 means never.
  std::chrono::nanoseconds stop_when_idle{0};
  // A FrameCounter whose zones, frames and counts go into the profile, or nullptr. Each sample is labelled with the
  // path of the innermost zone of its thread, "physics/solve"; zones and frames are in Profile::zones, the counts of
  // frames in Profile::counters. They take at most `memory_bytes` in addition; beyond that the oldest are dropped. Must
  // exist while Start is called, may be destroyed before Stop, and serves one session at a time. Makes a zone some 40
  // ns slower. If it can't be recorded (a machine without a tick counter, a forked child), a note says so.
  const FrameCounter* frames = nullptr;
  // A TaskCounter whose tasks go into the profile, or nullptr. Each sample is labelled with the task that its thread
  // ran, with the path of its innermost zone, "pathfinding/expand", and with the task's number; the parts of tasks are
  // in Profile::task_parts. They take at most `memory_bytes` in addition; beyond that the oldest are dropped. Otherwise
  // as `frames`.
  const TaskCounter* tasks = nullptr;
  // Keeps single samples, waits, zones and counts only of the frames that it selects (keep_frames.h), and merges all
  // others: memory use stays constant however long the session runs. Requires `frames` and RingMode::kStream. nullopt
  // keeps all, up to `memory_bytes`.
  std::optional<KeepFrames> keep{};
  // kWall: blocked threads are examined in rounds, for their stacks and for what they wait for. A round examines each
  // thread that has been blocked for longer than look_after, and examines it again once the wait is 1.5 times as long
  // as at the last time. A thread that marks frames is examined even if its wait has only just begun. Rounds are
  // max(look_after, 4 ms) apart, at most 100 ms (20 ms with `frames` or `tasks`); a wait that ends before the next
  // round is missed. If the missed waits of threads that mark frames add up to a quarter of the time since the last
  // round, the next round comes after 1 ms. That is limited to eight rounds in a row, and 80 a second.
  std::chrono::nanoseconds look_after = std::chrono::milliseconds(1);
  // kWall, if perfkit::locks is linked or preloaded: records waits for locks of the C library that last this long or
  // longer (ProfileWait::lock_kind), also those that no examination finds. Recording shorter waits distorts what is
  // measured.
  std::chrono::nanoseconds lock_waits_from = std::chrono::microseconds(10);
  // kWall: also records who woke each thread (ProfileWait::waker), by sampling sched:sched_waking, which becomes an
  // event of the profile. Costs the waker about 1 us for each thread that it wakes. Requires the right to sample
  // tracepoints (CAP_PERFMON and a readable tracefs), and the first pid namespace, not a container's; otherwise a note
  // says so. Records only wakers of this process; with `preempters` also other programs, threads of the kernel, and
  // interrupts on idle CPUs: then it costs each wake-up of the machine about 1 us.
  bool wakers = false;
  // Also takes the stack of the waker at each wake-up: FrameCause::thread_stack. Costs the waker some 10 us for each
  // thread that it wakes. No effect without `wakers`, and with SessionStacks::kNone.
  bool waker_stacks = false;
  // kWall: also records who ran in place of each preempted thread (ProfileWait::preempter), by reading
  // sched:sched_switch on all CPUs. Costs each switch of the machine about 1 us. Requires the rights of `wakers`, also
  // to observe CPUs; otherwise a note says so. Does not cover the wait for a CPU after a thread was woken.
  bool preempters = false;
  // Also samples page faults: each major one, and every 16th minor one of a thread on a CPU (with `events`: each one,
  // without its callers), as the events "minor-faults" and "major-faults", with the memory that was touched
  // (ProfileSample::memory). No effect if `events` has page-faults, minor-faults or major-faults: their samples have
  // the memory in any case. If only user space may be sampled, faults of system calls are missing.
  bool page_faults = false;
  // The session has a thread of its own. If false, call Poll() when poll_fd() is readable, and also every 100 ms, with
  // `frames` or `tasks` every 20 ms, with kWall every max(look_after, 4 ms): poll_fd() reports rings that fill, but
  // zones, tasks, blocked threads, on_batch and stop_after need Poll, too. A process does not end with its last other
  // thread (pthread_exit in main) while this one runs: Stop or destroy the session before.
  bool own_thread = true;
  // Resolves source lines and inlined calls, if perfkit::dwarf is linked.
  bool lines = true;
  // If another session runs: true stops it, even if Start then fails (it keeps its profile for its Stop()); false makes
  // Start fail.
  bool replace = false;
  // Called with finished samples, at most 100 ms apart if there are any (with own_thread = false, by each Poll), and
  // with the last ones by Stop, or by a Snapshot after sampling has ended. The weights of all batches sum to the
  // profile's. Batches include all threads, also those that `threads` and `thread_name` remove from the profile. Called
  // on the session's thread, or on the thread that calls Poll, Pause, Snapshot or Stop, destroys the session or replaces
  // it; one call at a time. New locations are named before the call, which reads files. It must not call the session,
  // or end its thread. It should be brief, because samples are lost once the rings are full. If it throws, it is not
  // called again, and a note says so. Requires RingMode::kStream.
  BatchCallback on_batch{};
  // Called by Snapshot and Stop every 10 ms while names are resolved; `done` goes from 0 to 1. It must not call the
  // session, or end its thread (pthread_exit). If it throws, it is not called again for that profile, and a note says so.
  SessionCallback<double> progress{};
};

// A running session; at most one a process. Thread-safe, except that it must not be moved or destroyed while another
// thread uses it. Movable, not copyable. Calls of a moved-from one, and of its copy in a forked child, return
// FailedPrecondition; poll_fd() is -1. The child may start its own session.
class Session {
 public:
  // Starts sampling. With SessionStacks::kBest, uses the next best stacks if the kernel does not permit some;
  // ProfileAccounting::notes says so. Errors: InvalidArgument if `interval` is out of range; if another duration is
  // negative; if cpu_budget is negative, infinite or NaN; if memory_bytes exceeds 1 TiB; if thread_name has an unclosed
  // '[' or ends with a backslash; if kOverwrite is combined with kWall, on_batch or keep; if wakers or preempters is set
  // without kWall; if keep_last is set without kOverwrite, or stop_when_idle without own_thread; if keep is set without
  // frames, or names more than 64 zones and events. ResourceExhausted if memory_bytes is too little for the rings of kOverwrite.
  // NotFound if one of `threads` is no thread of this process. FailedPrecondition if a session runs and `replace` is
  // false. Unimplemented for kLive and kDumps without perfkit::dwarf. Unavailable if the session's thread can't be
  // started. Otherwise as Sampler::Open, if no fallback works either.
  static absl::StatusOr<Session> Start(SessionOptions options = {});

  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  // Stops without a profile.
  ~Session();

  // Stops sampling, and returns the profile with names. Releases everything that the session held except three
  // descriptors, which the destructor closes. With kWall, a thread's on_ns + off_ns is exactly the time for which it
  // existed during the session, less the time paused. Errors: FailedPrecondition if Stop was called before.
  absl::StatusOr<Profile> Stop();
  // Returns the profile so far, with names; sampling continues. kOverwrite: returns what the rings hold now, with the
  // accounting since the previous snapshot; Profile::from_ns is the time of that snapshot, or if that is longer ago,
  // `keep_last` before now; Profile::to_ns is the time at which the rings were taken. After sampling has ended
  // (running() is false), returns what Stop will return. kWall: while the session runs, on_ns and off_ns may be wrong by
  // 50 us; both are 0 for a running thread that has no record yet.
  // Errors: FailedPrecondition after Stop; kOverwrite: Internal if an ioctl fails.
  absl::StatusOr<Profile> Snapshot();

  // Pause stops and Resume restarts writing to the rings. Samples in between count as EventAccounting::paused.
  // Errors: FailedPrecondition if the session is not running(); as Sampler::Pause.
  absl::Status Pause();
  absl::Status Resume();

  // Returns a descriptor for poll that is readable once a ring has reached its watermark; SessionOptions::own_thread
  // says when else to call Poll. The session owns it, and closes it in Stop and in its destructor; the number that this
  // returns does not change then.
  int poll_fd() const;
  // Drains and aggregates what the rings hold. With own_thread = true the session's thread does this; further calls are
  // permitted. No effect once sampling has ended. Errors: FailedPrecondition after Stop.
  absl::Status Poll();

  // Returns whether the session samples: false after Stop, after `stop_after` or `stop_when_idle`, and once another
  // session replaced it.
  bool running() const;

 private:
  explicit Session(std::shared_ptr<session::Impl> impl);
  std::shared_ptr<session::Impl> impl_;
};

}  // namespace perfkit
