// A profile: what a program did, as samples say it. A value: no descriptor, no thread, no file format.
//
//   samples ──> thread, event, weight            what happened, when, and how much of it one sample stands for
//      └──────> stacks (parent, location)        each distinct stack once: a tree, callers before callees
//                  └──> locations (module, offset)
//                          └──> calls (function, file, line)    what was inlined there first, the function itself last
//
// All tables are columns that index each other; index 0 of `strings` is "". Session makes profiles, ProfileBuilder
// makes them by hand; report.h, profile_writer.h and exporters read them.
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
// "count", "nanoseconds", "bytes": the words of pprof.
std::string_view ProfileUnitName(ProfileUnit unit);

// Something that samples count: an event of the kernel's, a follower of it, or time off the CPU.
struct ProfileEvent {
  std::string name;  // as it was asked for: "cpu-clock", "page-faults:u"; kOffCpuEvent
  ProfileUnit unit = ProfileUnit::kCount;
  // The event covers user space only, although more was asked for.
  bool user_only = false;
  // The kernel's count and what became of each sample. All 0 for events that the kernel does not count by itself
  // (followers, off-CPU time).
  EventAccounting accounting{};
};
// The event whose samples are the times at which threads were off their CPUs. Nanoseconds.
inline constexpr std::string_view kOffCpuEvent = "off-cpu";

// A thread, from its begin to its end: another thread that has the same number later is another one here. Or the sum of
// several that have ended: a session keeps about 1,000 of these apart, and adds the older ones up by name.
struct ProfileThread {
  uint32_t pid = 0, tid = 0;           // of a sum, `tid` is kFirstSum or more, and `pid` 0 if of several processes
  uint32_t name = 0;                   // in Profile::strings: the last name that it had
  uint32_t ended = 0;                  // how many ended threads it is the sum of; 0: it is one thread, or left out
  uint64_t on_ns = 0, off_ns = 0;      // on and off a CPU while it was watched; both 0 if that was not recorded
  uint64_t first_ns = 0, last_ns = 0;  // when it was first and last seen

  static constexpr uint32_t kFirstSum = 1 << 22;  // no thread has it: PID_MAX_LIMIT (include/linux/threads.h)
  bool is_sum() const { return tid >= kFirstSum; }
};

// A file whose code ran, or what stands for one: "[kernel]", "[vdso]", "//anon".
struct ProfileModule {
  uint32_t path = 0;      // in Profile::strings
  uint32_t build_id = 0;  // in Profile::strings, as hexadecimal digits; 0: unknown
};

// One call at a location: the function itself, or one that the compiler inlined there.
struct ProfileCall {
  uint32_t function = 0;  // in Profile::strings; 0: it has no name
  uint32_t file = 0;      // in Profile::strings; 0: unknown
  uint32_t line = 0;      // 0: unknown
  bool inlined = false;   // into the next call of the location
};

// A place in code.
struct ProfileLocation {
  uint32_t module = kNoModule;  // in Profile::modules; kNoModule: what was mapped there is unknown
  bool kernel = false;
  uint64_t address = 0;  // in the module's file; without one, the program counter
  // Its calls in Profile::calls, innermost first. None until names are resolved; without debug information one.
  uint32_t first_call = 0, calls = 0;

  static constexpr uint32_t kNoModule = UINT32_MAX;
};

// A stack: a location, and the stack that called it.
struct ProfileStack {
  uint32_t parent = kRoot;   // in Profile::stacks, always less than its own index; kRoot: no caller is known
  uint32_t location = 0;     // in Profile::locations
  bool is_guess = false;     // found by a frame pointer that nothing vouches for
  bool is_stitched = false;  // taken from an earlier stack of the same thread (StackFrame::is_stitched)

  static constexpr uint32_t kRoot = UINT32_MAX;
};

// What the stack of a sample is worth.
enum class StackQuality : uint8_t {
  kWhole,      // it reaches its root
  kPart,       // it ends early: truncated, or without unwind information (StackEnd)
  kLeafOnly,   // only the sampled instruction is known: no stack was taken with this sample
  kLastKnown,  // of a wait: the last stack known of the thread before it
  kNone,       // not even that: ProfileSample::stack is ProfileStack::kRoot
};
// "whole", "part", "leaf only", "last known", "none".
std::string_view StackQualityName(StackQuality quality);

// A sample, or several that were merged when the room for single ones was used up.
struct ProfileSample {
  uint64_t time_ns = 0;  // CLOCK_MONOTONIC; of off-CPU time, when it began; 0: merged, its times were given up
  uint64_t weight = 0;   // what it stands for, in the event's unit
  uint32_t samples = 1;  // how many it is; 0 of followers, whose samples are counted by their leader's event
  uint32_t thread = 0;   // in Profile::threads
  uint32_t stack = ProfileStack::kRoot;  // in Profile::stacks
  uint32_t label = 0;                    // in Profile::strings: the zone or task that was under way; 0: none
  uint32_t wait = kNoWait;               // in Profile::waits, of off-CPU time
  uint16_t event = 0;                    // in Profile::events
  StackQuality quality = StackQuality::kNone;

  static constexpr uint32_t kNoWait = UINT32_MAX;
  bool merged() const { return time_ns == 0; }
};

// What a thread waited for while it was off its CPU.
struct ProfileWait {
  bool preempted = false;           // could have run, but others did; with wakers also from its wake-up on
  bool blocked_in_syscall = false;  // `syscall` and `arguments` are known
  int32_t syscall = -1;             // its number on this machine
  std::array<uint64_t, 6> arguments{};
  // In Profile::strings: "futex 0x7f…", "read of descriptor 3 (pipe:[1234])"; 0: none. Files are those that descriptors
  // had when the thread was looked at, which may be others than when its call began.
  uint32_t detail = 0;
  // In Profile::strings: who ended the wait, "worker (1234)", "an interrupt"; 0: unknown (SessionOptions::wakers).
  uint32_t waker = 0;
};

// A zone, or a frame, that a thread was in from `from_ns` to `to_ns`.
struct ProfileZone {
  uint64_t from_ns = 0, to_ns = 0;
  uint32_t thread = 0;  // in Profile::threads
  uint32_t name = 0;    // in Profile::strings
  uint32_t cause = 0;   // in Profile::strings: of a frame that hitched, why; 0: none
  bool is_frame = false;
};

// A value over time: a counter of a frame, a queue's length.
struct ProfileCounter {
  struct Point {
    uint64_t time_ns = 0;
    double value = 0;
  };
  uint32_t name = 0;  // in Profile::strings
  ProfileUnit unit = ProfileUnit::kCount;
  uint32_t thread = kWholeProcess;  // in Profile::threads
  std::vector<Point> points;        // in order of time

  static constexpr uint32_t kWholeProcess = UINT32_MAX;
};

// What is missing, and what making the profile cost.
struct ProfileAccounting {
  uint64_t unwind_dropped = 0;     // samples whose stack was given up because too many waited: they are kLeafOnly
  uint64_t times_forgotten = 0;    // samples that were merged because the room for single ones was used up
  uint64_t stacks_forgotten = 0;   // samples whose stack was cut to its leaf because the stack table was full
  uint64_t waits_forgotten = 0;    // waits that are in the totals of kOffCpuEvent only
  uint64_t zones_forgotten = 0;    // zones and frames that are no tracks because the room for them was used up
  uint64_t zone_records_lost = 0;  // begins and ends of zones and frames that a thread's log had no room for
  uint64_t side_band_lost = 0;     // records of mappings and threads that were lost: names may be missing
  uint64_t unattributed = 0;       // SamplerStats::unattributed
  uint64_t own_cpu_ns = 0;         // CPU time that this process spent on making it
  uint64_t kernel_cpu_ns = 0;      // about what the kernel spent on it
  // How stacks were taken, what was fallen back to and why, what was given up when: a sentence each.
  std::vector<std::string> notes;
};

class Profile {
 public:
  // The tables. Each index must stay in its range when they are changed by hand: Check() tells.
  std::vector<std::string> strings{""};
  std::vector<ProfileEvent> events;
  std::vector<ProfileThread> threads;
  std::vector<ProfileModule> modules;
  std::vector<ProfileCall> calls;
  std::vector<ProfileLocation> locations;
  std::vector<ProfileStack> stacks;
  std::vector<ProfileSample> samples;  // in order of time, the merged ones first
  std::vector<ProfileWait> waits;
  std::vector<ProfileZone> zones;
  std::vector<ProfileCounter> counters;
  ProfileAccounting accounting;
  std::string program;              // the name of the process
  uint64_t from_ns = 0, to_ns = 0;  // when it was made, by CLOCK_MONOTONIC
  uint64_t realtime_offset_ns = 0;  // CLOCK_REALTIME is this much ahead of CLOCK_MONOTONIC

  // Sums of the weights and of the samples of an event. O(samples).
  struct Sum {
    uint64_t weight = 0, samples = 0;
    bool operator==(const Sum&) const = default;
  };
  Sum Total(size_t event) const;

  // The index of the event with this name; events.size() if there is none.
  size_t EventIndex(std::string_view name) const;

  // "worker", of a sum "worker (1,024 ended threads)".
  std::string ThreadName(uint32_t thread) const;

  // The calls of a location, innermost first: empty if its names are not resolved.
  std::span<const ProfileCall> CallsAt(uint32_t location) const;
  // The name of a call as reports print it: the function, or, if it has none, UnnamedCode().
  std::string CallName(uint32_t location, const ProfileCall& call) const;
  // Returns "[libfoo.so]+0x1234": the name of a location without calls.
  std::string UnnamedCode(uint32_t location) const;

  // OK if every index is in its range, every parent is less than its stack's index, and times do not run backwards.
  // InvalidArgument names the first entry that is wrong. Writers and reports require it.
  absl::Status Check() const;

  // Adds another profile of the same or of another process: events with the same name and unit, threads with the same
  // pid, tid and first_ns, modules with the same path and build id, locations with the same module, address and calls,
  // and stacks of these are each made one. Weights, samples and the accounting add up: two filtered copies of one
  // profile have its accounting twice. Times stay as they are: they are of one clock only if both were made since the
  // same boot. O(both). Requires Check() of both.
  void Merge(const Profile& other);

  // A copy that holds only what meets all conditions: samples; zones and counter points, by thread, time and zone. The
  // tables that samples point into stay as they are, and so does the accounting, which is that of the whole; the times
  // on and off the CPU of threads that are left out are 0. Patterns are those of fnmatch(3): "worker*".
  // Requires Check().
  struct Filter {
    std::vector<uint32_t> threads{};  // indexes; empty: all
    std::string thread_name{};        // a pattern; empty: all
    // Samples that were taken, and waits that began, at from_ns or later and before to_ns. A filter by time or zone
    // leaves out merged samples, which have no times; `notes` then says how many.
    uint64_t from_ns = 0, to_ns = UINT64_MAX;
    std::string function{};  // a pattern that the name of any call of the stack must match; empty: all
    std::string label{};     // a pattern for ProfileSample::label; empty: all
    std::string zone{};      // a pattern: only while a zone of that name was open on the thread
  };
  Profile Filtered(const Filter& filter) const;
};

}  // namespace perfkit
