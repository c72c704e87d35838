// A profile: what a program did, according to samples. A value: no descriptor, no thread, no file format.
//
//   samples ──> thread, event, weight            what happened, when, and how much of it a sample stands for
//      └──────> stacks (parent, location)        each distinct stack once: a tree, callers before callees
//                  └──> locations (module, offset)
//                          └──> calls (function, file, line)    inlined calls first, the function itself last
//
// The tables refer to each other by index; index 0 of `strings` is "". Session and ProfileCollector make profiles,
// ProfileBuilder makes them by hand; report.h, profile_writer.h and exporters.h read them.
#pragma once

#include "perfkit/detail/library_only.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "perfkit/sampler_stats.h"

namespace perfkit {

// The unit of an event's weights.
enum class ProfileUnit : uint8_t { kCount, kNanoseconds, kBytes };
// Returns "count", "nanoseconds" or "bytes", the words of pprof.
std::string_view ProfileUnitName(ProfileUnit unit);

// What samples count: a perf event, a follower of one, or time off the CPU.
struct ProfileEvent {
  std::string name;  // As requested: "cpu-clock", "page-faults:u"; or kOffCpuEvent.
  ProfileUnit unit = ProfileUnit::kCount;
  // The event was restricted to user space because this user may not observe the kernel.
  bool user_only = false;
  // The kernel's count, and where each sample went. All 0 for followers and off-CPU time, which have no count.
  EventAccounting accounting{};
};
// Name of the event whose samples are the times that threads spent off their CPUs. In nanoseconds.
inline constexpr std::string_view kOffCpuEvent = "off-cpu";

// A thread, from its start to its end: a later thread with the same tid has an entry of its own. Or the sum of several
// ended threads of the same name: a session keeps the latest 512 to 1,024 ended threads apart.
struct ProfileThread {
  uint32_t pid = 0, tid = 0;           // Of a sum: a tid from kFirstSum on, and pid 0 if it has several processes.
  uint32_t name = 0;                   // Its last name; index in Profile::strings.
  uint32_t ended = 0;                  // Of a sum: number of its threads; 0 if unknown (Profile::Filtered).
  uint64_t on_ns = 0, off_ns = 0;      // Time on and off a CPU while it was sampled; both 0 if not recorded.
  uint64_t first_ns = 0, last_ns = 0;  // When it was first and last seen, by CLOCK_MONOTONIC.

  static constexpr uint32_t kFirstSum = 1 << 22;  // Larger than any tid: PID_MAX_LIMIT (include/linux/threads.h).
  bool is_sum() const { return tid >= kFirstSum; }
};

// A mapped file, or other code: "[kernel]", "[vdso]", "//anon".
struct ProfileModule {
  uint32_t path = 0;      // Index in Profile::strings.
  uint32_t build_id = 0;  // Hexadecimal digits; index in Profile::strings. "" if unknown.
};

// One call at a location: the function itself, or a function that the compiler inlined there.
struct ProfileCall {
  uint32_t function = 0;  // Index in Profile::strings; "" if it has no name.
  uint32_t file = 0;      // Index in Profile::strings; "" if unknown.
  uint32_t line = 0;      // 0 if unknown.
  bool inlined = false;   // Inlined into the next call of the location.
};

// An address in code.
struct ProfileLocation {
  uint32_t module = kNoModule;  // Index in Profile::modules; kNoModule if it lies in no known mapping.
  bool kernel = false;
  uint64_t address = 0;  // Offset in the module's file (CodeLocation::offset); the pc if there is no file.
  // Its calls are Profile::calls[first_call .. first_call + calls), innermost first. None before names are resolved;
  // one without debug information.
  uint32_t first_call = 0, calls = 0;

  static constexpr uint32_t kNoModule = UINT32_MAX;
};

// A stack: a location, and the stack that called it.
struct ProfileStack {
  uint32_t parent = kRoot;   // The caller: an index in Profile::stacks less than its own; kRoot if none is known.
  uint32_t location = 0;     // Index in Profile::locations.
  bool is_guess = false;     // As StackFrame::is_guess.
  bool is_stitched = false;  // As StackFrame::is_stitched.

  static constexpr uint32_t kRoot = UINT32_MAX;
};

// How complete the stack of a sample is.
enum class StackQuality : uint8_t {
  kWhole,  // Complete: it reaches the root.
  // Incomplete: unwinding stopped before the root (StackEnd), calls of a deep stack's middle were left out (the frame
  // "[frames left out]"), or frames of the kernel may be missing.
  kPart,
  kLeafOnly,   // The sampled instruction alone: no stack was taken with this sample.
  kLastKnown,  // Of off-CPU time: the thread's latest stack from before the wait.
  kNone,       // No stack: ProfileSample::stack is ProfileStack::kRoot.
};
// Returns "whole", "part", "leaf only", "last known" or "none".
std::string_view StackQualityName(StackQuality quality);

// A sample, or several that were merged to limit the profile's memory.
struct ProfileSample {
  uint64_t time_ns = 0;  // By CLOCK_MONOTONIC; the start of off-CPU time; 0 for merged samples, whose times are lost.
  uint64_t weight = 0;   // What it stands for, in the event's unit.
  uint32_t samples = 1;  // Number of samples. 0 for followers: their leader's sample is the one that counts.
  uint32_t thread = 0;   // Index in Profile::threads.
  uint32_t stack = ProfileStack::kRoot;  // Index in Profile::stacks.
  // Path of the innermost zone, or any text of a ProfileBuilder; index in Profile::strings, "" if none.
  uint32_t label = 0;
  uint32_t wait = kNoWait;  // Of off-CPU time: index in Profile::waits, or kNoWait if unknown.
  uint16_t event = 0;       // Index in Profile::events.
  StackQuality quality = StackQuality::kNone;
  // Path of the task that ran, and of its innermost zone, "pathfinding/expand"; index in Profile::strings, "" outside
  // of tasks (SessionOptions::tasks).
  uint32_t task = 0;
  // Of a page fault: the memory that was touched; index in Profile::memory. kNoMemory if unknown, or merged.
  uint32_t memory = kNoMemory;
  // Tells apart tasks of one name (TaskCounter::Task::number). 0 outside of tasks, if unknown, and for merged samples.
  uint64_t task_number = 0;

  static constexpr uint32_t kNoWait = UINT32_MAX, kNoMemory = UINT32_MAX;
  bool merged() const { return time_ns == 0; }
};

// Memory that page faults were in: a mapping of the process. A session reads the mappings some milliseconds after a
// fault, so a later mapping at the same address may be named.
struct ProfileMemory {
  uint64_t from = 0, to = 0;  // Addresses: `to` is the first one after it.
  // The path of a mapped file; or a name of the kernel: "[heap]", "[stack]", "[anon:textures]" (PR_SET_VMA_ANON_NAME);
  // or kThreadStack. Index in Profile::strings; "" for memory without a name, as large blocks of malloc are.
  uint32_t name = 0;

  // Memory without a name that the thread's stack pointer was in, too.
  static constexpr std::string_view kThreadStack = "[thread stack]";
  bool operator==(const ProfileMemory&) const = default;
};

// What perfkit::locks has recorded a wait for.
enum class ProfileLock : uint8_t { kNone, kMutex, kRwlock, kCondition, kSemaphore };

// The thread that ran in place of a preempted one.
struct ProfilePreempter {
  uint32_t tid = 0;      // 0 if it is the idle task: the CPU had nothing to run, as when a CPU quota is used up.
  uint32_t command = 0;  // Its name at that time; index in Profile::strings, "" if no preempter is known.
  bool is_own = false;   // A thread of this process.
  uint32_t others = 0;   // Number of other threads that also ran there meanwhile, without the idle task.

  bool is_known() const { return command != 0; }
  bool operator==(const ProfilePreempter&) const = default;
};

// What a thread waited for while it was off its CPU.
struct ProfileWait {
  // Runnable, but others ran, or a CPU quota was used up. With SessionOptions::wakers, also the time from a wake-up
  // until the thread runs, which is then a wait of its own.
  bool preempted = false;
  bool blocked_in_syscall = false;  // `syscall` and `arguments` are known.
  int32_t syscall = -1;             // Number of the system call on this machine.
  std::array<uint64_t, 6> arguments{};
  // Text, "futex 0x7f…", "read of descriptor 3 (pipe:[1234])"; index in Profile::strings, "" if unknown. Says what the
  // descriptor referred to when the thread was examined, which may have changed since the call began. kProbablyDisk if
  // the thread was not examined, but had something read from a disk at about that time.
  uint32_t detail = 0;
  // What ended the wait: "worker (1234)", "bash (4321) of another program", "kworker/0:1 (12) of the kernel", or
  // kInterrupt; index in Profile::strings, "" if unknown (SessionOptions::wakers). With perfkit::locks also the thread
  // that released the lock.
  uint32_t waker = 0;
  // When the thread was last examined, by CLOCK_MONOTONIC; 0 if it was not examined. It was in this call at least until
  // then. If perfkit::locks has recorded the wait (`lock_kind`), the end of that record counts as an examination.
  uint64_t examined_ns = 0;
  // The thread that held the lock at that time; index in Profile::threads, kNoHolder if unknown or no lock. Known for
  // the locks of ThreadStatus::holder (blocked_threads.h). From `holder_since_ns` on, each examination found that
  // holder; or a record of perfkit::locks shows that it had the lock from then until it released it.
  uint32_t holder = kNoHolder;
  uint64_t holder_since_ns = 0;
  // Where the holder was blocked at that time, or, if it ran, the stack that most of its samples during the wait have;
  // index in Profile::stacks, ProfileStack::kRoot if unknown.
  uint32_t holder_stack = ProfileStack::kRoot;
  StackQuality holder_quality = StackQuality::kNone;
  // If perfkit::locks has recorded the wait: what it was for, and its address. `holder` is then the thread that held it
  // when the wait began, unless an examination has found a later one.
  ProfileLock lock_kind = ProfileLock::kNone;
  uint64_t lock = 0;
  // Of `preempted`: the thread that ran longest on the CPU that the waiting thread had to leave, until it was back
  // there. If it was moved to another CPU: the first one that ran in its place (SessionOptions::preempters).
  ProfilePreempter preempter{};
  // Of `preempted`: for how much of it at most a CPU quota of the process's cgroups was used up; 0 also if none can be
  // read, and for a wait that was still under way: the kernel's account grows at its end. That account is a sum over
  // CPUs, so it may have been on another one.
  uint64_t throttled_ns = 0;

  static constexpr uint32_t kNoHolder = UINT32_MAX;
  static constexpr std::string_view kInterrupt = "an interrupt", kProbablyDisk = "a disk, probably";
  // `waker` of other processes ends so.
  static constexpr std::string_view kOfOtherProgram = " of another program";
  // `detail` of a thread that did not wait by itself.
  static constexpr std::string_view kTraced = "stopped by a debugger", kStopped = "stopped by a signal";
};

// A zone or a frame of a thread, from `from_ns` to `to_ns`.
struct ProfileZone {
  uint64_t from_ns = 0, to_ns = 0;  // By CLOCK_MONOTONIC.
  uint32_t thread = 0;              // Index in Profile::threads.
  uint32_t name = 0;                // Index in Profile::strings. Of a frame: with its number, "frame 12".
  uint32_t cause = 0;               // Of a hitch: Hitch::cause; index in Profile::strings. "" otherwise.
  uint32_t reason = 0;  // Why the program asks to keep the frame (FrameCounter::Keep); index in Profile::strings.
  uint32_t state = 0;   // What the program says of the frame (FrameCounter::AttachState); index in Profile::strings.
  // Of a frame: the names of KeepFrames::worst_by for which it was kept, "physics, page-faults"; index in
  // Profile::strings. "" if it was kept for none.
  uint32_t worst_by = 0;
  bool is_frame = false;
  // Of a frame: whether all zones, samples and waits of its thread are in the profile. If not, some of them were
  // merged, dropped or left out by Filtered, or the frame began before the session or overlaps a Session::Pause, and it
  // has no explanation.
  bool is_whole = true;
  bool is_reference = false;  // Of a frame: chosen at random, to know what is usual (KeepFrames::references).
};

// A part of a task: it ran on a thread from `from_ns` to `to_ns`, and neither entered nor left a zone in between.
struct ProfileTaskPart {
  uint64_t from_ns = 0, to_ns = 0;  // By CLOCK_MONOTONIC.
  uint64_t number = 0;              // As ProfileSample::task_number.
  uint32_t thread = 0;              // Index in Profile::threads.
  uint32_t name = 0;                // Of the task; index in Profile::strings.
  uint32_t task = 0;                // As ProfileSample::task.
};

// A value over time, e.g. a count for each frame, or the length of a queue.
struct ProfileCounter {
  struct Point {
    uint64_t time_ns = 0;  // By CLOCK_MONOTONIC.
    double value = 0;
  };
  uint32_t name = 0;  // Index in Profile::strings.
  ProfileUnit unit = ProfileUnit::kCount;
  uint32_t thread = kWholeProcess;  // Index in Profile::threads, or kWholeProcess.
  std::vector<Point> points;        // In order of time.

  static constexpr uint32_t kWholeProcess = UINT32_MAX;
};

// What is missing from a profile, and what it cost.
struct ProfileAccounting {
  uint64_t times_forgotten = 0;   // Samples that were merged: to limit memory, or by SessionOptions::keep.
  uint64_t stacks_forgotten = 0;  // Samples whose stack was cut to its leaf or module to limit memory.
  // Samples with SessionStacks::kDumps that have no callers, because their dump was dropped: dumps came faster than
  // they could be unwound.
  uint64_t dumps_dropped = 0;
  // Samples at "[other addresses]": to limit memory, only the module was kept.
  uint64_t addresses_forgotten = 0;
  uint64_t waits_forgotten = 0;  // Waits that are only in the totals of kOffCpuEvent.
  // Zones and frames that were dropped: to limit memory, or by SessionOptions::keep. Of flight recorders, also frames
  // whose thread was preempted at their end, just before a snapshot: the next one begins after them.
  uint64_t zones_forgotten = 0;
  // Frames that SessionOptions::keep asks for, but that exceeded KeepFrames::max_frames or memory_bytes.
  uint64_t frames_dropped = 0;
  uint64_t task_parts_forgotten = 0;  // Parts of tasks that were dropped: as zones_forgotten.
  uint64_t task_records_lost = 0;     // Switches of tasks that a thread's log had no room for.
  uint64_t zone_records_lost = 0;     // Starts and ends of zones and frames that a thread's log had no room for.
  // Switches of CPUs between threads that were read to name preempters (SessionOptions::preempters), and lost ones.
  uint64_t switches_read = 0, switches_lost = 0;
  uint64_t side_band_lost = 0;  // Lost records of mappings and threads: names may be missing.
  uint64_t unattributed = 0;    // SamplerStats::unattributed.
  uint64_t own_cpu_ns = 0;      // CPU time that this process spent to make the profile.
  uint64_t naming_cpu_ns = 0;   // Part of own_cpu_ns: to name functions and fill tables, also for earlier profiles.
  uint64_t kernel_cpu_ns = 0;   // Estimate of the kernel's CPU time for it.
  // A flight recorder (RingMode::kOverwrite): from then on the profile has the samples of all threads, apart from lost
  // ones and pauses. It has earlier ones, since Profile::from_ns, of some CPUs only. 0 if it is not from a flight
  // recorder: then all of the time is covered.
  uint64_t whole_from_ns = 0;
  // Sentences: how stacks were taken, which fallbacks were used and why, what was reduced and when.
  std::vector<std::string> notes;
};

// Not thread-safe to change; thread-safe to read. Copies are independent of each other.
class Profile {
 public:
  // The tables. After changes by hand, Check() verifies the indices.
  std::vector<std::string> strings{""};
  std::vector<ProfileEvent> events;
  std::vector<ProfileThread> threads;
  std::vector<ProfileModule> modules;
  std::vector<ProfileCall> calls;
  std::vector<ProfileLocation> locations;
  std::vector<ProfileStack> stacks;
  std::vector<ProfileSample> samples;  // In order of time, merged ones first.
  std::vector<ProfileWait> waits;
  std::vector<ProfileMemory> memory;
  std::vector<ProfileZone> zones;
  std::vector<ProfileTaskPart> task_parts;  // In order of their beginnings; Check does not verify that.
  std::vector<ProfileCounter> counters;
  ProfileAccounting accounting;
  std::string program;  // Name of the process.
  // The time that it covers, by CLOCK_MONOTONIC. In a time namespace, all times of a profile are the host's.
  uint64_t from_ns = 0, to_ns = 0;
  uint64_t realtime_offset_ns = 0;  // CLOCK_REALTIME less CLOCK_MONOTONIC.

  struct Sum {
    uint64_t weight = 0, samples = 0;
    bool operator==(const Sum&) const = default;
  };
  // Returns the sums over all samples of an event. O(samples).
  Sum Total(size_t event) const;

  // Returns the index of the first event with this name; events.size() if there is none.
  size_t EventIndex(std::string_view name) const;

  // Returns the number of threads, counting those in sums.
  uint64_t ThreadCount() const;

  // Returns the thread's name; for a sum "worker (1,024 ended threads)", without the number if it is unknown.
  std::string ThreadName(uint32_t thread) const;

  // Returns the calls at a location, innermost first; empty if names are not resolved. A view of `calls`.
  std::span<const ProfileCall> CallsAt(uint32_t location) const;
  // Returns the call's function, or UnnamedCode() if it has no name.
  std::string CallName(uint32_t location, const ProfileCall& call) const;
  // Returns "[libfoo.so]+0x1234": the name of a location without calls.
  std::string UnnamedCode(uint32_t location) const;

  // Returns OK if every index and enumerator is in its range, strings[0] is "", each parent precedes its stack, samples
  // without a stack, and only these, have StackQuality::kNone, counters have finite values, the weights of an event
  // add up to less than 2^64, no time off the CPU ends at 2^64 ns or later, and times do not run backwards. Writers and
  // reports require it. Errors: InvalidArgument with the first wrong entry.
  absl::Status Check() const;

  // Adds another profile, of the same process or another one. Unifies events with the same name and unit, threads with
  // the same pid, tid and first_ns, sums of threads with the same pid and name, modules with the same path and
  // build-id, locations with the same module, address and calls, and equal stacks of these. A zone, part of a task or
  // counter point that both have is one; a frame is whole if it is so in one of them. Adds weights, samples and the
  // accounting: after merging two filtered copies of one profile, its accounting is in there twice. Does not change
  // times: they are comparable only if both profiles were made since the same boot. Requires Check() of both, and at
  // most 65,536 events in all. O(both).
  void Merge(const Profile& other);

  // Selects a part of a profile. Patterns are those of fnmatch(3): "worker*". Empty members select all.
  struct Filter {
    std::vector<uint32_t> threads{};  // Indices in Profile::threads.
    std::string thread_name{};        // Pattern.
    // Selects what has a time from `from_ns` on and before `to_ns`: samples, off-CPU time by its start, and counter
    // points. Selects zones and parts of tasks that overlap this interval. Merged samples have no time: a filter by
    // time or by zone removes them, and a note says how many.
    uint64_t from_ns = 0, to_ns = UINT64_MAX;
    std::string function{};  // Pattern: samples with a call of that name anywhere in the stack.
    std::string label{};     // Pattern for ProfileSample::label.
    std::string task{};      // Pattern for ProfileSample::task, also of the parts of tasks.
    // Pattern: only while a zone of that name was open on the thread. Zones and parts of tasks must lie in it as a
    // whole. Counters of the process pass filters by thread; by zone, those of any selected thread count.
    std::string zone{};
  };
  // Returns a copy with only those samples, zones, parts of tasks and counter points that meet all conditions; its
  // from_ns and to_ns are cut to the filter's. The tables that samples refer to stay as they are, and the accounting is
  // that of the whole profile. Threads that were not selected have on_ns and off_ns 0, and their sums count no threads.
  // So have all threads of a filter by anything but threads, as it is not known which part of that it selects.
  // Requires Check().
  Profile Filtered(const Filter& filter) const;
};

// Returns a copy of a profile whose stacks begin with the task of their samples, as calls in a module "[task]": the
// tasks that await it, the outermost first, and the zones of each. So a call tree or flame graph shows what was done on
// behalf of a task, whichever threads and event loops ran it:
//   ProfileSample::task "level/load > file"  ──>  level, level/load, file, main, Loop, Resume, ...
// Names that contain "/" or " > " are split, too. Samples outside of tasks, and those without a stack, stay as they
// are. Stacks that samples no longer refer to stay in the table. Requires Check().
Profile RootedAtTasks(const Profile& profile);

}  // namespace perfkit
