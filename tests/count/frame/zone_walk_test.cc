// A random walk over zones: they nest, frames end inside of them, workers come and go, the process forks, and mappings
// or events are refused. Each zone's counts are held against raw events that are read just inside and just outside of
// it, and its calls against those that were made. A walk is made from one number, its seed: tests/support/walk.h.
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/frame_counter.h"
#include "src/sys/perf_abi.h"
#include "tests/count/walk_actor.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/skip.h"
#include "tests/support/walk.h"
#include "tests/support/work.h"

namespace perfkit::walk {
namespace {

struct ZoneMove {
  enum class Kind : uint8_t { kEnter, kLeave, kTouch, kSwitchAway, kMark, kWorker, kFork, kKinds };
  Kind kind = Kind::kTouch;
  uint32_t amount = 1;  // A name, pages, switches.
};

struct ZoneWalk {
  uint64_t no_mapping = 0;  // Bit i: the i-th mapping of an event is refused.
  std::vector<ZoneMove> moves;

  std::string Describe() const {
    std::string text = absl::StrFormat("no mapping %x", no_mapping);
    for (const ZoneMove& move : moves) {
      absl::StrAppendFormat(&text, ", %d(%d)", static_cast<int>(move.kind), move.amount);
    }
    return text;
  }
};

ZoneWalk MakeZoneWalk(uint64_t seed) {
  std::mt19937_64 random(seed);
  ZoneWalk walk;
  if (random() % 3 == 0) walk.no_mapping = random() % 64;
  for (size_t i = 5 + random() % 40; i > 0; --i) {
    const auto kind = static_cast<ZoneMove::Kind>(random() % static_cast<size_t>(ZoneMove::Kind::kKinds));
    walk.moves.push_back({kind, static_cast<uint32_t>(1 + random() % 4)});
  }
  return walk;
}

constexpr size_t kZoneEvents = 2;
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

uint64_t g_zone_mappings = 0, g_zone_refusals = 0;
void* RefuseZoneMappings(void* address, size_t size, int protection, int flags, int fd, off_t offset) {
  if (fd >= 0 && g_zone_mappings++ < 64 && (g_zone_refusals >> (g_zone_mappings - 1) & 1) != 0)
    return errno = EPERM, MAP_FAILED;
  return sys::kLinux.mmap(address, size, protection, flags, fd, offset);
}

class ZoneWalker {
 public:
  explicit ZoneWalker(const ZoneWalk& walk) : walk_(walk) {
    fake_.below().mmap = RefuseZoneMappings;
    g_zone_mappings = 0;
    g_zone_refusals = walk.no_mapping;
  }

  std::string Go() {
    std::string wrong;
    {
      FrameCounter frames({.events = {"page-faults", "context-switches"}});
      g_zone_refusals = 0;
      frames.Mark();
      for (const ZoneMove& move : walk_.moves) Do(frames, move);
      while (!open_.empty()) Leave(frames);
      frames.Mark();
      wrong = Judge(frames);
    }
    return wrong.empty() && !fake_.Leaks().empty() ? "leaks " + fake_.Leaks() : wrong;
  }

 private:
  // What is known of the zones with one path.
  struct Known {
    uint64_t calls = 0;
    Reading least{}, most{};
  };
  struct OpenZone {
    std::string path;
    Reading outside{}, inside{};  // Before and after it was entered.
  };
  static constexpr const char* kNames[] = {"a", "b", "c", "d"};

  void Do(FrameCounter& frames, const ZoneMove& move) {
    switch (move.kind) {
      case ZoneMove::Kind::kEnter: return Enter(frames, kNames[move.amount - 1]);
      case ZoneMove::Kind::kLeave:
        if (!open_.empty()) Leave(frames);
        return;
      case ZoneMove::Kind::kTouch: return memory_.Forget(), memory_.Touch(0, move.amount);
      case ZoneMove::Kind::kSwitchAway: return testing::SwitchAway();
      case ZoneMove::Kind::kMark: return frames.Mark();
      case ZoneMove::Kind::kWorker: return Work(frames, move.amount);
      case ZoneMove::Kind::kFork: return Fork(frames);
      case ZoneMove::Kind::kKinds: return;
    }
  }

  void Enter(FrameCounter& frames, const char* name) {
    OpenZone zone{(open_.empty() ? "" : open_.back().path) + "/" + name, raw_.Now(), {}};
    frames.Enter({name});
    zone.inside = raw_.Now();
    open_.push_back(std::move(zone));
  }

  void Leave(FrameCounter& frames) {
    const OpenZone zone = std::move(open_.back());
    open_.pop_back();
    const Reading inside = raw_.Now();
    frames.Leave();
    const Reading outside = raw_.Now();
    Known& known = known_[zone.path];
    ++known.calls;
    for (size_t i = 0; i < kZoneEvents; ++i) {
      known.least[i] += inside[i] - zone.inside[i];
      known.most[i] += outside[i] - zone.outside[i];
    }
  }

  void Work(FrameCounter& frames, uint32_t pages) {
    std::thread([&] {
      const RawEvents raw;
      testing::FreshPages memory(4);
      const Reading outside = raw.Now();
      Reading inside{}, inside_end{};
      {
        const FrameCounter::Zone zone(frames, {"job"});
        inside = raw.Now();
        memory.Touch(0, pages);
        inside_end = raw.Now();
      }
      const Reading outside_end = raw.Now();
      Known& known = known_["workers"];
      ++known.calls;
      for (size_t i = 0; i < kZoneEvents; ++i) {
        known.least[i] += inside_end[i] - inside[i];
        known.most[i] += outside_end[i] - outside[i];
      }
    }).join();
  }

  // The child may use zones, which count nothing there.
  void Fork(FrameCounter& frames) {
    if (testing::kSanitized) return;
    const bool fine = InForkedChild([&] {
      frames.Enter({"child"});
      memory_.Touch(0, 1);
      frames.Leave();
      for (size_t i = 0; i < open_.size(); ++i) frames.Leave();
      frames.Mark();
      return true;
    });
    if (!fine) wrong_ = "the child of a fork ended";
  }

  std::string Judge(const FrameCounter& frames) const {
    const std::vector<ZoneStats> zones = frames.zones();
    std::map<std::string, Known> left = known_;
    std::vector<std::string> paths;
    for (const ZoneStats& zone : zones) {
      const bool root = zone.depth == 0;
      paths.push_back(root ? "" : zone.thread.empty() ? paths[zone.parent] + "/" + zone.name : zone.thread);
      if (root) continue;
      const auto found = left.find(paths.back());
      if (found == left.end()) return "a zone that was not entered: " + paths.back();
      const std::string wrong = JudgeZone(frames, zone, found->second);
      if (!wrong.empty()) return paths.back() + ": " + wrong;
      left.erase(found);
    }
    return !wrong_.empty() || left.empty() ? wrong_ : "a zone is missing: " + left.begin()->first;
  }

  std::string JudgeZone(const FrameCounter& frames, const ZoneStats& zone, const Known& known) const {
    if (zone.calls != known.calls) return absl::StrFormat("%d calls, and %d were made", zone.calls, known.calls);
    for (size_t i = 0; i < kZoneEvents; ++i) {
      const Count& count = zone.total[i];
      if (!count.validity.counted() || !raw_.has(i) || frames.path(i) == ReadPath::kUsage) continue;
      if (count.value >= known.least[i] && count.value <= known.most[i]) continue;
      return absl::StrFormat("event %d: %d, and the kernel says %d to %d", i, count.value, known.least[i],
                             known.most[i]);
    }
    return "";
  }

  const ZoneWalk& walk_;
  testing::FakeKernel fake_;
  const RawEvents raw_;
  testing::FreshPages memory_{8};
  std::vector<OpenZone> open_;
  std::map<std::string, Known> known_;  // By path; those of all workers together.
  std::string wrong_;
};

void WalkZonesFor(uint64_t seconds) {
  const auto run = [](const ZoneWalk& walk) { return ZoneWalker(walk).Go(); };
  WalkFor(seconds, "zones", MakeZoneWalk, run, [](auto& shrinker) {
    shrinker.Try([](ZoneWalk& less) { less.no_mapping = 0; });
    shrinker.TryWithout(&ZoneWalk::moves);
  });
}

TEST_CASE("random zones, frames and workers: no count is wrong", "[zone_walk][law]") {
  if (testing::kSanitized) SKIP_TEST("a sanitizer's runtime has faults of its own");
  WalkZonesFor(1);
}

TEST_CASE("random zones, frames and workers, for long", "[zone_walk][.heavy][law]") { WalkZonesFor(kHeavySeconds); }

}  // namespace
}  // namespace perfkit::walk
