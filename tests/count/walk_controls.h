// What a walk's numbers are held against: raw events, getrusage, and what the walk itself has done.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/str_format.h"
#include "perfkit/counter.h"
#include "src/event/attr.h"
#include "src/sys/kernel.h"
#include "src/sys/perf_abi.h"
#include "tests/count/walk_case.h"
#include "tests/support/work.h"

namespace perfkit::walk {

// How an event's number is known another way.
enum class Oracle : uint8_t {
  kRawEvent,
  kClock,
  kFaultUsage,
  kMinorUsage,
  kMajorUsage,
  kSwitches,
  kMoves,
  kCalls,
  kZero
};

inline std::optional<Oracle> OracleOf(const CounterSet& set, size_t i) {
  const EventConfig& event = set.event(i);
  const bool usage = set.path(i) == ReadPath::kUsage;
  if (event.name == "sched:sched_switch") return Oracle::kSwitches;
  if (event.name == "syscalls:sys_enter_getppid" || event.name == EventText(kProbe)) return Oracle::kCalls;
  if (event.parts.size() != 1 || event.parts[0].type != sys::kTypeSoftware) return std::nullopt;
  switch (event.parts[0].config) {
    case sys::kSwTaskClock:
    case sys::kSwCpuClock: return Oracle::kClock;
    case sys::kSwPageFaults: return usage ? Oracle::kFaultUsage : Oracle::kRawEvent;
    case sys::kSwPageFaultsMin: return usage ? Oracle::kMinorUsage : Oracle::kRawEvent;
    case sys::kSwPageFaultsMaj: return usage ? Oracle::kMajorUsage : Oracle::kRawEvent;
    case sys::kSwContextSwitches: return Oracle::kSwitches;
    case sys::kSwCpuMigrations: return Oracle::kMoves;
    case sys::kSwDummy:
    case event::kAlignmentFaults.config:
    case event::kEmulationFaults.config:
    case event::kBpfOutput.config: return Oracle::kZero;
    default: return std::nullopt;
  }
}

// What raw events count. `own`: the calling thread, of which other numbers are known, too.
struct RawTarget {
  bool own = true;
  pid_t pid = 0;
  int cpu = -1;
  bool inherit = false;
};

// The raw events, and what else is known.
class Controls {
 public:
  using Reading = std::array<uint64_t, kMaxEvents>;

  // One for each event of `set`, which must outlive it.
  Controls(const CounterSet& set, const RawTarget& target) : set_(set), target_(target) {
    for (size_t i = 0; i < set.size(); ++i) {
      oracles_[i] = OracleOf(set, i);
      // Two clocks of another task begin one after the other each time that it is switched in.
      if (!target.own && oracles_[i] && oracles_[i] != Oracle::kClock) oracles_[i] = Oracle::kRawEvent;
      if (oracles_[i] != Oracle::kRawEvent && oracles_[i] != Oracle::kClock) continue;
      sys::PerfEventAttr attr = event::ToAttr(set.event(i), set.event(i).parts[0]);
      if (oracles_[i] == Oracle::kClock || set.fixed_flags(i).has(Validity::kUserOnly)) {
        attr.exclude_kernel = attr.exclude_hv = 1;  // clocks do not mind
      }
      attr.inherit = target.inherit;
      fds_[i] = sys::kLinux.perf_event_open(&attr, target.pid, target.cpu, -1, sys::kOpenFdCloexec);
      if (fds_[i] < 0) oracles_[i] = std::nullopt;
    }
  }
  ~Controls() {
    for (const int fd : fds_) {
      if (fd >= 0) close(fd);
    }
  }
  Controls(const Controls&) = delete;
  Controls& operator=(const Controls&) = delete;

  std::optional<Oracle> oracle(size_t i) const { return oracles_[i]; }
  bool own() const { return target_.own; }

  Reading Read() const {
    Reading now{};
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    for (size_t i = 0; i < set_.size(); ++i) {
      if (!oracles_[i]) continue;
      now[i] = Value(*oracles_[i], i, usage);
    }
    return now;
  }

  uint64_t moves = 0, calls = 0;

 private:
  uint64_t Value(Oracle oracle, size_t i, const rusage& usage) const {
    const auto minor = static_cast<uint64_t>(usage.ru_minflt), major = static_cast<uint64_t>(usage.ru_majflt);
    switch (oracle) {
      case Oracle::kFaultUsage: return minor + major;
      case Oracle::kMinorUsage: return minor;
      case Oracle::kMajorUsage: return major;
      case Oracle::kSwitches: return static_cast<uint64_t>(usage.ru_nvcsw + usage.ru_nivcsw);
      case Oracle::kMoves: return moves;
      case Oracle::kCalls: return calls;
      case Oracle::kZero: return 0;
      case Oracle::kClock:
        if (set_.path(i) == ReadPath::kUsage) return testing::NowNs(CLOCK_THREAD_CPUTIME_ID);
        break;
      case Oracle::kRawEvent: break;
    }
    uint64_t value = 0;
    return ::read(fds_[i], &value, sizeof(value)) == sizeof(value) ? value : 0;
  }

  const CounterSet& set_;
  const RawTarget target_;
  std::array<std::optional<Oracle>, kMaxEvents> oracles_{};
  std::array<int, kMaxEvents> fds_ = [] {
    std::array<int, kMaxEvents> none{};
    none.fill(-1);
    return none;
  }();
};

// A reading of the set between two of the controls.
struct Moment {
  uint64_t longest_ns = 0;  // Longest time of a read so far: also in handlers, and of reads that a jump left.
  Controls::Reading before, after;
  rusage usage_after, usage_before;
  Snapshot snapshot;
};

// `read` reads the set into a snapshot, and returns how long that was interrupted on purpose.
template <class Read>
void TakeMoment(const Controls& controls, Moment& moment, Read&& read) {
  moment.before = controls.Read();
  getrusage(RUSAGE_THREAD, &moment.usage_before);
  const uint64_t begun_ns = testing::NowNs(CLOCK_MONOTONIC);
  const uint64_t interrupted_ns = read(moment.snapshot);
  moment.longest_ns = std::max(moment.longest_ns, testing::NowNs(CLOCK_MONOTONIC) - begun_ns - interrupted_ns);
  getrusage(RUSAGE_THREAD, &moment.usage_after);
  moment.after = controls.Read();
}

inline void TakeMoment(const CounterSet& set, const Controls& controls, Moment& moment) {
  TakeMoment(controls, moment, [&](Snapshot& now) { return set.Read(now), uint64_t{0}; });
}

inline long Switches(const rusage& usage) { return usage.ru_nvcsw + usage.ru_nivcsw; }

inline constexpr std::string_view kMayBeHost = "a clock: ";

// What is wrong with event `i` from `from` to `to`; "": nothing. Begins with kMayBeHost if a host may be to blame,
// which drew out a switch or a read.
inline std::string Judge(const CounterSet& set, const Controls& controls, size_t i, const Moment& from,
                         const Moment& to) {
  // Two clocks of a thread begin one after the other each time that it is switched in. And a clock's base may lie
  // beside the truth by half of a read.
  constexpr uint64_t kClockSlackNs = 20'000, kSwitchSlackNs = 50'000, kHostSlackNs = 50'000'000;
  const Count count = set.Difference(from.snapshot, to.snapshot, i);
  if (!count.validity.counted()) return count.value == 0 ? "" : "a value that is not counted";
  const bool switched = controls.own() && Switches(to.usage_before) != Switches(from.usage_after);
  if (switched && !count.validity.has(Validity::kSwitched)) return "was switched, and says that it was not";
  if (!controls.oracle(i)) return "";
  const uint64_t least = to.before[i] - from.after[i], most = to.after[i] - from.before[i];
  const auto is_within = [&](uint64_t slack) { return count.value + slack >= least && count.value <= most + slack; };
  if (is_within(0)) return "";
  const bool is_clock = controls.oracle(i) == Oracle::kClock;
  const auto switches = static_cast<uint64_t>(Switches(to.usage_after) - Switches(from.usage_before));
  if (is_clock && is_within(kClockSlackNs + to.longest_ns + switches * kSwitchSlackNs)) return "";
  const bool may_be_host = is_clock && is_within(kHostSlackNs);
  if (may_be_host && !controls.own()) return "";
  return absl::StrFormat("%s%d, and the kernel says %d to %d", may_be_host ? kMayBeHost : "", count.value, least, most);
}

}  // namespace perfkit::walk
