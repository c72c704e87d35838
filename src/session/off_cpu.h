// Measures the times that threads are on and off the CPU, by switch records. Both add up to the time for which a thread
// was watched.
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
#include "src/session/preemptions.h"

namespace perfkit::session {

// What ended a wait, and when. From then on the thread waits for a CPU.
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
  // The findings of a look; 0, kRoot and nullopt if there was none.
  uint64_t looked_ns = 0;
  uint32_t stack = ProfileStack::kRoot;
  StackQuality quality = StackQuality::kNone;
  std::optional<proc::BlockedCall> call{};
  std::string wait{};            // sys::DescribeCall
  Holder holder{};               // not proven yet: KeepProvenHolders
  uint64_t holder_since_ns = 0;  // all looks since then have found this holder
  std::string waker{};           // "": not known
  uint64_t ran_from_ns = 0;      // it ran from then on until it left the CPU
  std::optional<Preempter> preempter{};
  uint64_t throttled_ns = 0;  // ProfileWait::throttled_ns

  uint64_t duration_ns() const { return to_ns - from_ns; }
};

// The findings of a look at a thread that was off its CPU at `at_ns`. `times_run`: how often it had run by then.
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

  // Emits a blocked span in two parts: until it was woken, and from then on, when it only waited for a CPU.
  static void Split(OffCpuSpan span, const Waker& waker, Emit emit);

  // Watches a thread from now on. Its first record says whether it has run until then.
  void Begin(uint32_t thread, uint32_t tid, uint64_t time_ns);
  // Adds a SWITCH record. Emits the span that it ends.
  void Switched(uint32_t thread, uint32_t tid, uint64_t time_ns, bool out, bool preempted, Emit emit);
  // The thread was woken, and only waits for a CPU from now on: its span is emitted in two parts, and the second one is
  // preempted.
  void Woken(uint32_t thread, Waker waker);
  // The thread was sampled: it ran. If it was off its CPU until then, a record is missing, and it is on from now on.
  void Ran(uint32_t thread, uint64_t time_ns, Emit emit);
  // Returns the threads that exist, and have no record yet.
  std::vector<Sleeper> Unknown() const;
  // Sets whether such a thread was found on a CPU.
  void SeenRunning(uint32_t thread, bool runs);
  // Sets the stack with which the thread was last sampled.
  void SetLastStack(uint32_t thread, uint32_t stack);
  // Later SWITCH records may be missing, until Resume: the sampler is being paused or stopped. That a thread ends then,
  // without any record, does not prove that it has run until its end.
  void KnownUntil(uint64_t time_ns) { known_until_ns_ = time_ns; }
  // To be called for an EXIT record. Emits the span that is under way.
  void End(uint32_t thread, uint64_t time_ns, Emit emit);
  // Ends the spans that are under way at `time_ns`, and begins new ones, for a snapshot. `is_last`: all records are
  // known. Only then is it certain that a thread which was found running (SeenRunning), and has no record, has run all
  // the time. Before that, its times are left open.
  void CutAt(uint64_t time_ns, bool is_last, Emit emit);
  // Between Pause and Resume no thread is watched, because there are no SWITCH records. A thread's first record after
  // Resume says whether it has run since then.
  void Pause(uint64_t time_ns, Emit emit);
  void Resume(uint64_t time_ns);

  // Returns the threads that have been off their CPU since `before_ns` or longer, were not preempted, and for which
  // IsDue returns true.
  std::vector<Sleeper> ToLookAt(uint64_t before_ns, uint64_t now_ns) const;
  // Returns all threads that have not ended.
  std::vector<Sleeper> Watched() const;
  // Returns true if a thread was not looked at in its span, or if its last look was in the first two thirds of the span
  // until now. So a span has few looks, and the last one proves most of it. The thread's records may say that it runs:
  // later ones may be still to come.
  bool IsDue(uint32_t thread, uint64_t now_ns) const;
  // Adds what a look has found. It belongs to the span in which it was made. That may be a later one than ToLookAt has
  // seen, if the records in between are still to come. A look at a later span than that of the last look is dropped,
  // because only one is kept.
  void Looked(uint32_t thread, const OffCpuLook& look);

  // Sums of a thread, up to its last record or CutAt.
  struct Times {
    uint64_t on_ns = 0, off_ns = 0;
  };
  Times TimesOf(uint32_t thread) const;
  // Forgets a thread that has ended, because its index may become another thread's.
  void Forget(uint32_t thread) { threads_.erase(thread); }
  // Thread i has the index renamed[i] from now on: renumbers the holders that looks have found.
  void RenameHolders(std::span<const uint32_t> renamed);
  // How often a record contradicted the one before it: SWITCH records were lost, and times are wrong there.
  uint64_t missed() const { return missed_; }

 private:
  enum class Phase : uint8_t { kUnknown, kOn, kOff, kEnded };
  struct State {
    uint32_t thread = 0, tid = 0;
    Phase phase = Phase::kUnknown;
    uint64_t since_ns = 0;
    uint64_t ran_from_ns = 0;   // when the latest kOn began
    bool preempted = false;     // in kOff
    bool seen_running = false;  // in kUnknown
    // The last look: at this span, or at a later one whose records are still to come.
    std::optional<OffCpuLook> look{};
    uint64_t holder_since_ns = 0;  // all looks since then have found the holder of `look`
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
  uint64_t known_until_ns_ = UINT64_MAX;
  bool paused_ = false;
};

}  // namespace perfkit::session
