// What a walk over zones does, made from its seed; and raw events, which its counts are held against.
#pragma once

#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/frame_counter.h"
#include "src/sys/kernel.h"
#include "src/sys/perf_abi.h"
#include "tests/support/single_step.h"

namespace perfkit::walk {

struct ZoneMove {
  enum class Kind : uint8_t {
    kEnter,         // By Enter.
    kConstruct,     // By a Zone.
    kLeave,         // The innermost zone, as it was entered.
    kEndElsewhere,  // The n-th zone from inside, on another thread, if it is a Zone.
    kTouch,
    kSwitchAway,
    kMark,
    kWorker,        // A thread with a zone.
    kSwitchWorker,  // The same, and counting is disabled while the zone is open.
    kFork,
    kSetEnabled,  // To what it is not.
    kSampling,    // By another profiler, which begins or ends.
    kKinds,
  };
  Kind kind = Kind::kTouch;
  uint32_t amount = 1;  // A name, pages, switches.
  // Of an interrupted walk: number of instructions of the call that enters or leaves a zone, or ends the frame, after
  // which a handler has a zone, too; 0: no handler.
  uint32_t interrupted_at = 0;
};

struct ZoneWalk {
  uint64_t no_mapping = 0;   // Bit i: the i-th mapping of an event is refused.
  bool interrupted = false;  // Signals, whose handler has a zone of its own, come at any instruction.
  bool all_hitches = false;  // Each frame is over the budget, and the callback has a zone of its own.
  std::vector<ZoneMove> moves;

  std::string Describe() const {
    std::string text = absl::StrFormat("no mapping %x%s%s", no_mapping, interrupted ? ", interrupted" : "",
                                       all_hitches ? ", all hitches" : "");
    for (const ZoneMove& move : moves) {
      absl::StrAppendFormat(&text, ", %d(%d) at %d", static_cast<int>(move.kind), move.amount, move.interrupted_at);
    }
    return text;
  }
};

// The last two agree in more characters than a column of a report has.
inline constexpr const char* kZoneNames[] = {
    "a",
    "b",
    "c",
    "d",
    "void engine::World<engine::Cells<float>, engine::Bodies<float>>::Step(float) [with Part = physics]",
    "void engine::World<engine::Cells<float>, engine::Bodies<float>>::Step(float) [with Part = particles]"};

inline ZoneWalk MakeZoneWalk(uint64_t seed) {
  std::mt19937_64 random(seed);
  ZoneWalk walk;
  walk.interrupted = random() % 4 == 0;
  walk.all_hitches = random() % 4 == 0;
  if (random() % 3 == 0) walk.no_mapping = random() % 64;
  for (size_t i = 5 + random() % 40; i > 0; --i) {
    const auto kind = static_cast<ZoneMove::Kind>(random() % static_cast<size_t>(ZoneMove::Kind::kKinds));
    walk.moves.push_back({kind, static_cast<uint32_t>(1 + random() % std::size(kZoneNames))});
    if (!walk.interrupted || !testing::kHasSingleSteps || random() % 2 != 0) continue;
    walk.moves.back().interrupted_at = static_cast<uint32_t>(1 + random() % (random() % 4 == 0 ? 2000 : 300));
  }
  return walk;
}

constexpr size_t kZoneEvents = 2;  // Page faults and context switches.
using Reading = std::array<uint64_t, kZoneEvents>;

// Raw events of the calling thread, with the kernel's part if that is permitted.
class RawEvents {
 public:
  RawEvents() {
    for (size_t i = 0; i < kZoneEvents; ++i) {
      sys::PerfEventAttr attr{};
      attr.size = sizeof(attr);
      attr.type = sys::kTypeSoftware;
      attr.config = i == 0 ? sys::kSwPageFaults : sys::kSwContextSwitches;
      fds_[i] = sys::kLinux.perf_event_open(&attr, 0, -1, -1, sys::kOpenFdCloexec);
      if (fds_[i] >= 0 || i != 0) continue;
      attr.exclude_kernel = attr.exclude_hv = 1;
      fds_[i] = sys::kLinux.perf_event_open(&attr, 0, -1, -1, sys::kOpenFdCloexec);
    }
  }
  ~RawEvents() {
    for (const int fd : fds_) close(fd);
  }
  RawEvents(const RawEvents&) = delete;
  RawEvents& operator=(const RawEvents&) = delete;

  bool has(size_t i) const { return fds_[i] >= 0; }
  Reading Now() const {
    Reading now{};
    for (size_t i = 0; i < kZoneEvents; ++i) {
      if (has(i) && ::read(fds_[i], &now[i], sizeof(now[i])) != sizeof(now[i])) now[i] = 0;
    }
    return now;
  }

 private:
  std::array<int, kZoneEvents> fds_{};
};

// What is known of the zones with one path.
struct KnownZone {
  uint64_t calls = 0;       // That were left on their own thread.
  uint64_t more_calls = 0;  // That may or may not be counted.
  uint64_t elsewhere = 0;   // That were left on another thread, as the innermost zone of theirs.
  bool may_lack = false;    // There are more of these.
  Reading least{}, most{};  // Of all calls together.

  // A part of a visit: the latest that it began and the earliest that it ended, and the reverse.
  void AddLeast(const Reading& from, const Reading& to) {
    for (size_t i = 0; i < kZoneEvents; ++i) least[i] += to[i] - from[i];
  }
  void AddMost(const Reading& from, const Reading& to) {
    for (size_t i = 0; i < kZoneEvents; ++i) most[i] += to[i] - from[i];
  }
  void Add(const KnownZone& other) {
    calls += other.calls;
    more_calls += other.more_calls;
    elsewhere += other.elsewhere;
    may_lack = may_lack || other.may_lack;
    AddLeast({}, other.least);
    AddMost({}, other.most);
  }
};

// Returns what is wrong; "": nothing. A total is the self and the totals of the children, exactly.
inline std::string JudgeSums(const std::vector<ZoneStats>& zones) {
  struct Sum {
    uint64_t wall_ns = 0;
    Reading counts{};
  };
  std::vector<Sum> sums(zones.size());
  for (size_t i = zones.size(); i-- > 0;) {
    const ZoneStats& zone = zones[i];
    sums[i].wall_ns += zone.self_wall_ns;
    if (sums[i].wall_ns != zone.wall_ns || zone.self_wall_ns > zone.wall_ns) {
      return absl::StrFormat("%s: %d ns, and its parts take %d", zone.name, zone.wall_ns, sums[i].wall_ns);
    }
    for (size_t e = 0; e < kZoneEvents; ++e) {
      sums[i].counts[e] += zone.self[e].value;
      const bool adds_up = sums[i].counts[e] == zone.total[e].value && zone.self[e].value <= zone.total[e].value;
      if (zone.total[e].validity.counted() && !adds_up) {
        return absl::StrFormat("%s: %d, and its parts have %d", zone.name, zone.total[e].value, sums[i].counts[e]);
      }
    }
    if (zone.parent == i) continue;
    sums[zone.parent].wall_ns += zone.wall_ns;
    for (size_t e = 0; e < kZoneEvents; ++e) sums[zone.parent].counts[e] += zone.total[e].value;
  }
  return "";
}

}  // namespace perfkit::walk
