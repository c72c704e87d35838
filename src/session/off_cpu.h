// Time off the CPU, by switch records: on + off = the time for which a thread was watched.
//
//   on ─── out (preempted?) ─ ─ ─ looked at: stack, system call ─ ─ ─ in ─── EXIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/functional/function_ref.h"
#include "perfkit/profile.h"
#include "src/proc/blocked_call.h"

namespace perfkit::session {

// Who ended a wait, and when. From then on the thread waits for a CPU.
struct Waker {
  std::string name;  // "worker (1234)"
  uint64_t at_ns = 0;
};

// The thread that holds the lock that another one waits for, and where it was blocked at that time.
struct Holder {
  uint32_t thread = ProfileWait::kNoHolder;  // in Profile::threads
  uint32_t stack = ProfileStack::kRoot;      // kRoot: it ran
  StackQuality quality = StackQuality::kNone;
};

// A time off the CPU that has ended, or has lasted until now.
struct OffCpuSpan {
  uint32_t thread = 0;  // in Profile::threads
  uint64_t from_ns = 0, to_ns = 0;
  bool preempted = false;
  // What a look at it found. 0, kRoot, nullopt: it was not looked at.
  uint64_t looked_ns = 0;
  uint32_t stack = ProfileStack::kRoot;
  StackQuality quality = StackQuality::kNone;
  std::optional<proc::BlockedCall> call{};
  std::string wait{};            // sys::DescribeCall
  Holder holder{};               // not proven yet: KeepProvenHolders
  uint64_t holder_since_ns = 0;  // since this look at least, all have found that holder
  std::string waker{};           // "": not known

  uint64_t duration_ns() const { return to_ns - from_ns; }
};

// What a look at a thread found that was off its CPU at `at_ns`. `times_run`: how often it had run by then.
struct OffCpuLook {
  uint64_t at_ns = 0, times_run = 0;
  uint32_t stack = ProfileStack::kRoot;
  StackQuality quality = StackQuality::kNone;
  proc::BlockedCall call{};
  std::string wait{};
  Holder holder{};
};

// Not thread-safe.
class OffCpu {
 public:
  using Emit = absl::FunctionRef<void(const OffCpuSpan& span)>;
  struct Sleeper {
    uint32_t thread = 0, tid = 0;
  };

  // A thread is there: from now on it is watched. Whether it runs is known by its first record.
  void Begin(uint32_t thread, uint32_t tid, uint64_t time_ns);
  // A SWITCH record. Emits the span that ends by it.
  void Switched(uint32_t thread, uint32_t tid, uint64_t time_ns, bool out, bool preempted, Emit emit);
  // The thread will run again as soon as it gets a CPU: its span ends in two, and the second one is preempted.
  void Woken(uint32_t thread, Waker waker);
  // The thread was sampled: it ran. If it was off its CPU until then, a record is missing, and it is on from now on.
  void Ran(uint32_t thread, uint64_t time_ns, Emit emit);
  // Threads that exist, and have no record yet.
  std::vector<Sleeper> Unknown() const;
  // Such a thread was found runnable, or not.
  void SeenRunning(uint32_t thread, bool runs);
  // Its stack when it was last sampled.
  void SetLastStack(uint32_t thread, uint32_t stack);
  // EXIT, or the end of the watch: emits the span that is under way.
  void End(uint32_t thread, uint64_t time_ns, Emit emit);
  // Ends what is under way at `time_ns`, and begins it anew, for a snapshot.
  // A thread that SeenRunning was told of and that has had no record at all has run all the time, which is certain only
  // once all records are known: `is_last`; until then its times are left open.
  void CutAt(uint64_t time_ns, bool is_last, Emit emit);
  // Between these no thread is watched: there are no SWITCH records. After Resume a thread's first record says what it
  // did before.
  void Pause(uint64_t time_ns, Emit emit);
  void Resume(uint64_t time_ns);

  // Threads that have been off their CPU since `before_ns` or longer, not preempted, and were not looked at yet, or not
  // since two thirds of the span until now. So the looks of a span are few, and the last one proves most of it.
  std::vector<Sleeper> ToLookAt(uint64_t before_ns, uint64_t now_ns) const;
  // All threads that have not ended.
  std::vector<Sleeper> Watched() const;
  // Whether a thread may be looked at for the first time in its span, or again by the same rule. Its records may say
  // that it runs, or could run: later ones are still to come.
  bool IsDue(uint32_t thread, uint64_t now_ns) const;
  // The look belongs to the span in which it was made. That may be a later one than ToLookAt has seen: the records in
  // between are still to come. A look at a later span than that of the look before is dropped: both can't be kept.
  void Looked(uint32_t thread, const OffCpuLook& look);

  // Sums of a thread, up to its last record or CutAt.
  struct Times {
    uint64_t on_ns = 0, off_ns = 0;
  };
  Times TimesOf(uint32_t thread) const;
  // A thread that has ended is watched no more, and its index may be another thread's.
  void Forget(uint32_t thread) { threads_.erase(thread); }
  // Threads have other indexes from now on: what looks have found is renamed.
  void RenameHolders(std::span<const uint32_t> renamed);
  // How often a record contradicted the one before it: SWITCH records were lost, and times are wrong there.
  uint64_t missed() const { return missed_; }

 private:
  enum class Phase : uint8_t { kUnknown, kOn, kOff, kEnded };
  struct State {
    uint32_t thread = 0, tid = 0;
    Phase phase = Phase::kUnknown;
    uint64_t since_ns = 0;
    bool preempted = false;     // in kOff
    bool seen_running = false;  // in kUnknown
    // Of this span if it was made until now, else of a later one.
    std::optional<OffCpuLook> look{};
    uint64_t holder_since_ns = 0;  // the first look that found the holder of `look`, as all since then
    std::optional<Waker> waker{};  // of this span
    uint32_t last_stack = ProfileStack::kRoot;
    Times times;
  };

  static bool IsDue(const State& state, uint64_t now_ns);
  void Close(State& state, uint64_t time_ns, Emit emit);
  static void EmitSpan(const State& state, uint64_t now_ns, Emit emit);
  void Change(State& state, Phase phase, bool preempted);

  std::unordered_map<uint32_t, State> threads_;  // by index in Profile::threads
  uint64_t missed_ = 0;
  bool paused_ = false;
};

}  // namespace perfkit::session
