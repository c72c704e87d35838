// A profiling session: start, work, stop, look.
//
//   auto session = perfkit::Session::Start({.interval = std::chrono::milliseconds(1)});
//   Work();
//   perfkit::Profile profile = *session->Stop();
//   fputs(perfkit::FormatReport(profile).c_str(), stdout);   // report.h
//   perfkit::WriteProfile(profile, "work.pb.gz");            // profile_writer.h
//
// Samples all threads of this process, with the best stacks that are linked and permitted: whole ones if
// perfkit::dwarf is linked. One owned thread, "perfkit-session", drains and aggregates; or the caller's own loop does.
#pragma once

#include "perfkit/detail/library_only.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "perfkit/profile.h"
#include "perfkit/sampler.h"
#include "perfkit/session_batch.h"

namespace perfkit {

class FrameCounter;

namespace session {
class Impl;
}

// How a session takes stacks.
enum class SessionStacks : uint8_t {
  kBest,           // kLive if perfkit::dwarf is linked and the kernel permits it, else kDumps, else kFramePointers
  kLive,           // each thread walks its own stack when it is sampled (CallStack::Live)
  kDumps,          // copies of the stack, unwound by the session's thread, stitched (CallStack::UserDump)
  kFramePointers,  // the kernel follows frame pointers: short or wrong if code has none; ends before what is no code
  kNone,           // the sampled instruction alone
};

// Which time a session measures.
enum class SessionClock : uint8_t {
  kCpu,   // when threads run
  kWall,  // also when they don't: the event kOffCpuEvent, with what each thread waited for
};

struct SessionOptions {
  // Time between two samples of a thread, in CPU time: 10 us to 10 s.
  std::chrono::nanoseconds interval = std::chrono::milliseconds(1);
  // What to sample instead of the CPU clock, as for a Sampler; `interval` is then unused. Followers are events of the
  // profile, after all these, named "page-faults at cpu-clock": with each sample, what they have counted on its thread
  // and CPU since the sample before. What they count after a thread's last sample, during a Pause, and in a flight
  // recorder before the first sample is in no sample: threads that end before they are sampled have no part.
  std::vector<SampledEvent> events{};
  // kWall requires kStream. A flight recorder reads SWITCH records only at a snapshot, too late to look at a thread
  // while it sleeps; and each CPU's ring forgets from a time of its own, so that the times on and off the CPU of a
  // thread that has moved between CPUs would not add up.
  SessionClock clock = SessionClock::kCpu;
  SessionStacks stacks = SessionStacks::kBest;
  // kStream: everything from Start to Stop. kOverwrite: a flight recorder; Snapshot and Stop give what is left in the
  // rings, the latest `memory_bytes` of it.
  RingMode mode = RingMode::kStream;
  // kOverwrite: all rings together. kStream: the profile's single samples; when they take more, the oldest are merged
  // (ProfileSample::merged), and totals stay exact. Distinct stacks take up to half as much besides; then new ones are
  // cut to their leaf (ProfileAccounting::stacks_forgotten), and each distinct address takes 210 to 420 bytes.
  size_t memory_bytes = 64 << 20;
  // CPU budget as a fraction of one CPU (SamplerOptions::cpu_budget); 0 disables it.
  double cpu_budget = 0;
  // User space only, even if more is permitted.
  bool user_only = false;
  // A glob pattern (fnmatch): only threads whose last name matches are in the profile. All are sampled: the accounting
  // is that of all, and a note says how many samples are left out. "": all.
  std::string thread_name{};
  // Stops sampling after this time; Stop() still gives the profile. 0: never.
  std::chrono::nanoseconds stop_after{0};
  // A FrameCounter whose zones, frames and counters go into the profile: each sample is labelled with the innermost
  // zone that its thread was in, as "physics/solve"; zones and frames are Profile::zones, the counts of frames
  // Profile::counters. They take at most `memory_bytes` besides; beyond that the oldest are no tracks any more. It is
  // used by one session at a time, must exist while Start is called, and may be destroyed before the session stops. A
  // zone then costs some 40 ns more. nullptr: none.
  const FrameCounter* frames = nullptr;
  // kWall: a thread that is off its CPU for longer than this is looked at, to know its stack and what it waits for.
  std::chrono::nanoseconds look_after = std::chrono::milliseconds(1);
  // kWall: also who woke each thread (ProfileWait::waker), by samples of sched:sched_waking, which are an event of the
  // profile. Costs the waker about 1 us for each thread that it wakes. Needs the right to sample tracepoints (CAP_PERFMON
  // and a readable tracefs); without it a note says so. Only this process's threads are seen: what wakes a thread
  // otherwise, another process or an interrupt on an idle CPU, is not known.
  bool wakers = false;
  // Whether the session has a thread of its own. If not, call Poll() when poll_fd() is readable, and every 100 ms.
  bool own_thread = true;
  // Source lines and inlined calls, if perfkit::dwarf is linked.
  bool lines = true;
  // While another session runs: fail (false), or stop that one, which keeps its profile for its Stop() (true).
  bool replace = false;
  // Called with samples as they are finished: about every 100 ms, and by Stop with the last ones, so that the weights
  // of all batches sum to those of the profile (which `thread_name` restricts, and batches not). Called by the
  // session's thread, or by the thread that calls Poll, Pause, Snapshot or Stop; never twice at once. New locations are
  // named before, which reads files. It must not call the session, and should be brief: samples are lost once the rings
  // are full. If it throws, it is not called again, and a note says so. Requires kStream.
  BatchCallback on_batch{};
  // Called by Snapshot and Stop while names are resolved, every 10 ms, with how much is done, from 0 to 1. It must not
  // call the session.
  std::function<void(double done)> progress{};
};

// A running session. Thread-safe, except that it must not be moved or destroyed while another thread uses it. In a
// forked child it does nothing: its calls return FailedPrecondition; the child may start its own.
class Session {
 public:
  // Starts sampling. What can't be had is fallen back from, and said in ProfileAccounting::notes.
  // Errors: InvalidArgument for an interval out of range, for kWall or on_batch with kOverwrite, for wakers without kWall, or as Sampler::Open;
  // FailedPrecondition if a session runs and `replace` is not set; as Sampler::Open if not even the least can be had.
  static absl::StatusOr<Session> Start(SessionOptions options = {});

  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  // Stops without a profile.
  ~Session();

  // Stops sampling and returns the profile, with names; the session releases everything that it held.
  // FailedPrecondition if it was stopped already. kWall: on_ns + off_ns of a thread is the time for which it was there,
  // less the time paused, exactly.
  absl::StatusOr<Profile> Stop();
  // The profile so far, with names; sampling goes on. kOverwrite: what the rings hold now, and the accounting since the
  // last one; once sampling has stopped, what Stop will give. kWall: the latest 50 us may be on the wrong side of on_ns
  // and off_ns; both are 0 for a running thread without any record yet.
  absl::StatusOr<Profile> Snapshot();

  // Pause and Resume gate the rings: what happens in between is counted as `paused`. FailedPrecondition if stopped.
  absl::Status Pause();
  absl::Status Resume();

  // Without an own thread: readable when there is something to do. Owned by the session, which closes it when it is
  // stopped, destroyed or forked.
  int poll_fd() const;
  // Drains and aggregates what there is. For any thread; the session's own thread does the same.
  absl::Status Poll();

  // Whether the session samples: false after Stop, `stop_after`, or once another session has replaced it.
  bool running() const;

 private:
  explicit Session(std::shared_ptr<session::Impl> impl);
  std::shared_ptr<session::Impl> impl_;
};

}  // namespace perfkit
