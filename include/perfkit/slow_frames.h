// The slowest frames of a profile, and what each spent its time on beyond the usual.
//
//   auto session = perfkit::Session::Start({.clock = perfkit::SessionClock::kWall, .frames = &frames});
//   ...
//   perfkit::Profile profile = *session->Stop();
//   fputs(perfkit::FormatSlowFrames(profile).c_str(), stdout);
//
//   a frame   |--- physics ---|== off the CPU: futex ... ==|--- physics ---|-- render --|
//
// Each moment of a frame belongs to one part: a wait off the CPU, or else the innermost zone that was open. So the
// parts add up to the frame exactly. A frame is compared with the frames of its kind: those of one frame sequence
// (FrameId) on one thread. A profile tells sequences apart by their names without the number at the end ("frame 12"),
// so give the sequences of a thread different names.
//
// The causes are derived from the parts: what made the frame slow, and which thread is to blame. Their shares add up to
// the frame's excess exactly. Time that can't be attributed is kUnknown; FrameCause::remedy names the right or the
// option that would tell more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perfkit/profile.h"

namespace perfkit {

// A part of a frame's time on its thread.
struct FramePart {
  enum class Kind : uint8_t {
    kZone,       // On a CPU. If the profile has no off-CPU time, perhaps also off it.
    kWait,       // Off the CPU, blocked.
    kPreempted,  // Off the CPU, but runnable.
  };
  Kind kind = Kind::kZone;
  // kZone: the path of the innermost zone, "physics/solve"; "" for time outside of all zones. kWait: what it waited
  // for, "futex", without addresses and wakers, which differ from frame to frame; "" if unknown. kPreempted: "".
  std::string name;
  uint64_t ns = 0;        // Its time in this frame.
  uint64_t usual_ns = 0;  // Its median time in the frames that this one is compared with (FindSlowFrames).
  // Index in Profile::stacks. kZone: the most frequent stack of its samples. kWait, kPreempted: the stack of the
  // longest wait. ProfileStack::kRoot if none is known.
  uint32_t stack = ProfileStack::kRoot;
  StackQuality quality = StackQuality::kNone;  // Of `stack`.
  uint32_t wait = ProfileSample::kNoWait;      // kWait, kPreempted: index of the longest one in Profile::waits.
  // kZone: number of samples of the first clock (without a clock, of the first event) in the part, and how many of them
  // have `stack`.
  uint32_t samples = 0, samples_of_stack = 0;

  // Returns how much longer than usual it took; negative if shorter.
  int64_t excess_ns() const { return static_cast<int64_t>(ns) - static_cast<int64_t>(usual_ns); }
};

// How often an event happened in a frame: one that the FrameCounter counts, or that the session samples.
struct FrameCount {
  std::string name;  // "page-faults".
  double value = 0;
  double usual = 0;  // Median in the frames that it is compared with.
  // The stack with most of the event's samples: index in Profile::stacks, or ProfileStack::kRoot if there is none.
  uint32_t stack = ProfileStack::kRoot;
  StackQuality quality = StackQuality::kNone;  // Of `stack`.
  double at_stack = 0;                         // Number of events at `stack`.

  double excess() const { return value - usual; }
};

// Page faults of a frame's thread, by the memory that was touched and by the zone that touched it. Needs samples of
// faults (SessionOptions::page_faults): counts are sums of their weights.
struct FaultedMemory {
  uint32_t memory = ProfileSample::kNoMemory;  // Index in Profile::memory; kNoMemory if unknown.
  std::string zone;                            // Path of the innermost zone, "" outside of all zones.
  uint64_t faults = 0;
  std::optional<uint64_t> major;  // Those of them that read from a disk; nullopt if major-faults is not sampled.
  // The stack that most faults have, and how many (at_stack): index in Profile::stacks, or ProfileStack::kRoot.
  uint32_t stack = ProfileStack::kRoot;
  StackQuality quality = StackQuality::kNone;
  uint64_t at_stack = 0;
};

// Why a frame took longer than usual.
struct FrameCause {
  enum class Kind : uint8_t {
    kUnknown,     // Not attributed. `what`: what is not known; `remedy`: what would tell.
    kMoreWork,    // Ran longer on its CPU in a zone. `what`: the zone's path, "" outside of all zones.
    kPageFaults,  // The kernel handled more page faults in a zone. `what`: the zone's path.
    // Could have run, but other threads or programs did, or a CPU quota (cgroup) was used up that can't be read.
    // `what`: the one that ran longest, "`cc1plus` (tid 123) and 2 other threads"; "" if unknown
    // (SessionOptions::preempters).
    kPreempted,
    // Could have run, but a CPU quota (cgroup) was used up: the part of a wait that ProfileWait::throttled_ns explains.
    // Known if the thread's CPU was idle meanwhile (SessionOptions::preempters).
    kThrottled,
    // Seemed to run in a zone, but a hypervisor or interrupts had its CPU: the time that neither its CPU clock nor
    // records of switches have (kernels that leave both out of CPU clocks). `what`: the zone's path. At most likely.
    kStolen,
    kLock,           // Waited for a lock. `thread`: its holder; without ProfileWait::holder, who ended the wait.
    kAllocatorLock,  // Waited for the lock of malloc, free, operator new or their like. `thread`: who ended the wait.
    kFileLock,       // Waited for the lock of a file (flock, fcntl). `what`: which. `thread`: who ended the wait.
    // The part of a kLock or kOtherThread wait in which `thread` was preempted, if it is a quarter of the wait or more;
    // the whole wait, if that part is more than three quarters of it.
    kPriorityInversion,
    kIo,  // Waited for a descriptor, `what`: the call and its file; or ProfileWait::kProbablyDisk.
    // Waited for `thread` without a lock: a condition variable, a futex, a join. Or for the other end of a pipe or
    // FIFO, `what`, which may be another program's.
    kOtherThread,
    kSleep,       // Slept, or waited with a timeout, until a time that the program chose.
    kSystemCall,  // Waited in another system call, or was stopped. `what`: in which, or by what.
    kLess,        // All parts that took less time than usual. `share_ns` is negative.
  };
  enum class Confidence : uint8_t {
    kUnknown,  // Of Kind::kUnknown.
    kLikely,   // Follows from what is known, but something else may be true.
    kKnown,    // The kernel's records or a look at the waiting thread show it for at least half of `share_ns`.
  };
  Kind kind = Kind::kUnknown;
  Confidence confidence = Confidence::kUnknown;
  int64_t share_ns = 0;  // How much of SlowFrame::excess_ns() it explains.
  std::string what;      // As `kind` says; otherwise what was waited for, "futex 0x7f12".
  std::string remedy;    // The right or the option that would tell more; "" if none would.
  // Where the frame's thread was: index in Profile::stacks, ProfileStack::kRoot if unknown.
  uint32_t stack = ProfileStack::kRoot;
  StackQuality quality = StackQuality::kNone;
  uint32_t wait = ProfileSample::kNoWait;  // Of a wait: index of the longest one in Profile::waits.
  // kPageFaults: the memory that most faults of the zone were in; index in Profile::memory, kNoMemory if unknown.
  uint32_t memory = ProfileSample::kNoMemory;
  // The thread to blame: index in Profile::threads, kNoThread if none or unknown. `thread_stack` is where it was during
  // the wait. `thread_zone` is its innermost zone: for kLock in the middle of the wait, otherwise at the end of the
  // wait; "" if none. What other threads did is looked at only if the wait's share is 1/50 of the excess or more:
  // otherwise `thread_stack` is not known, a thread that no record names is not blamed, and kPriorityInversion is not
  // told apart.
  uint32_t thread = kNoThread;
  uint32_t thread_stack = ProfileStack::kRoot;
  StackQuality thread_quality = StackQuality::kNone;
  std::string thread_zone;

  static constexpr uint32_t kNoThread = UINT32_MAX;
};

// Returns "more work", "page faults", "lock": for tables and legends.
std::string_view FrameCauseKindName(FrameCause::Kind kind);
// Returns "unknown", "likely" or "known".
std::string_view FrameCauseConfidenceName(FrameCause::Confidence confidence);

// What another thread of the process ran during a frame.
struct FrameThread {
  uint32_t thread = 0;  // Index in Profile::threads.
  uint64_t ns = 0;      // Its time on a CPU in the frame, by samples of the first clock.
  // The stack that most of these samples have, and its share of `ns`: index in Profile::stacks, or ProfileStack::kRoot.
  uint32_t stack = ProfileStack::kRoot;
  StackQuality quality = StackQuality::kNone;
  uint64_t stack_ns = 0;
};

// A frame that took longer than usual.
struct SlowFrame {
  uint32_t zone = 0;      // Index of the frame in Profile::zones.
  uint64_t ns = 0;        // Its length: exactly the sum of its parts.
  uint64_t usual_ns = 0;  // Median length of the frames that it is compared with.
  // Sorted by excess_ns(), the largest first. Includes parts that this frame lacks (ns is 0) if their median is not 0.
  std::vector<FramePart> parts;
  // excess_ns() less the sum of the parts' excesses; seldom 0, because medians do not add up.
  int64_t rest_ns = 0;
  std::vector<FrameCount> counts;  // Of events other than clocks; sorted by name.
  std::vector<FaultedMemory> faults;  // Sorted by number of faults, the most first.
  // Cycles for each ns on the CPU, if the FrameCounter counts cycles and task-clock of user space and kernel; 0 if they
  // are not known. usual_ghz: the median of the frames that it is compared with.
  double ghz = 0, usual_ghz = 0;
  // Sorted by share_ns, the largest first; the shares sum to excess_ns(). A cause of kUnknown, "medians that do not add
  // up", accounts for `rest_ns`; its share may be negative.
  std::vector<FrameCause> causes;
  // The threads that ran for a tenth of the frame or more, the longest first, without the frame's and the session's
  // own.
  std::vector<FrameThread> others;

  int64_t excess_ns() const { return static_cast<int64_t>(ns) - static_cast<int64_t>(usual_ns); }
};

struct SlowFrameOptions {
  std::string name{};  // fnmatch(3) pattern for names of frames without their number, "audio"; "" means all.
  size_t frames = 3;   // Maximum number of frames, besides those with a ProfileZone::reason.
};

// Returns the frames with the largest excess_ns(), the largest first, and those with a ProfileZone::reason. Omits other
// frames that took no longer than usual, and frames that are not whole (ProfileZone::is_whole). Compares frames with
// the references of their kind (ProfileZone::is_reference); without references, with each other. Needs a profile with
// SessionOptions::frames. A thread counts as running if its waits are not known: without off-CPU time, during a pause
// of the session, and where Profile::Filtered removed waits. Requires Profile::Check(). Thread-safe while the profile
// does not change. O(n log n) in the zones and samples, for each thread with frames and each frame that is returned.
std::vector<SlowFrame> FindSlowFrames(const Profile& profile, const SlowFrameOptions& options = {});

// Returns one frame, however long it took. `zone`: index in Profile::zones of a frame that is whole. As FindSlowFrames.
SlowFrame ExplainFrame(const Profile& profile, uint32_t zone);

// Return the same as text: for each frame its causes, then its largest parts with their stacks, and the sum of the
// others. FormatSlowFrames returns the error's text if the profile does not pass Check(); FormatSlowFrame, for one
// frame, requires Check().
std::string FormatSlowFrames(const Profile& profile, const SlowFrameOptions& options = {});
std::string FormatSlowFrame(const Profile& profile, const SlowFrame& frame);

// Returns a cause as a sentence: "a lock that loader (1234) held in LoadLevel(), wanted in Render()". `cause`: of a
// frame of `profile`.
std::string FormatFrameCause(const Profile& profile, const FrameCause& cause);

}  // namespace perfkit
