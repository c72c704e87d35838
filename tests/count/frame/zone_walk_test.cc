// A random walk over zones: they nest, end on other threads and in handlers of signals, frames end inside of them,
// counting is disabled and enabled, workers come and go, the process forks, and mappings are refused. Each zone's
// counts are held against raw events that are read just inside and just outside of it, its calls against those that
// were made, and each total against the sum of its parts. A walk is made from one number, its seed:
// tests/support/walk.h.
#include <errno.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/frame_counter.h"
#include "tests/count/frame/zone_walk_case.h"
#include "tests/count/walk_actor.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/raw_sampling.h"
#include "tests/support/signal_storm.h"
#include "tests/support/skip.h"
#include "tests/support/walk.h"
#include "tests/support/work.h"

namespace perfkit::walk {
namespace {

uint64_t g_zone_mappings = 0, g_zone_refusals = 0;
void* RefuseZoneMappings(void* address, size_t size, int protection, int flags, int fd, off_t offset) {
  if (fd >= 0 && g_zone_mappings++ < 64 && (g_zone_refusals >> (g_zone_mappings - 1) & 1) != 0)
    return errno = EPERM, MAP_FAILED;
  return sys::kLinux.mmap(address, size, protection, flags, fd, offset);
}

// What the handler of signals has its zones in; nullptr while that may open events, which no handler may.
std::atomic<FrameCounter*> g_handlers_frames = nullptr;
std::atomic<uint64_t> g_handlers_zones = 0;

void ZoneInHandler() {
  FrameCounter* const frames = g_handlers_frames.load();
  if (frames == nullptr || !frames->enabled()) return;
  ++g_handlers_zones;
  frames->Enter({"handler"});
  frames->Leave();
}

class ZoneWalker {
 public:
  explicit ZoneWalker(const ZoneWalk& walk) : walk_(walk) {
    if (!walk.interrupted) fake_.emplace().below().mmap = RefuseZoneMappings;
    g_zone_mappings = 0;
    g_zone_refusals = walk.no_mapping;
    g_handlers_zones = 0;
  }

  std::string Go() {
    {
      FrameCounter frames({.events = {"page-faults", "context-switches"},
                           .hitch_budget = std::chrono::nanoseconds(walk_.all_hitches ? 1 : 0)});
      g_zone_refusals = 0;
      if (walk_.all_hitches) frames.OnHitch([&](const Hitch&) { ZoneInCallback(frames); });
      Mark(frames);
      {
        std::optional<testing::SignalStorm> storm;
        if (walk_.interrupted) storm.emplace(ZoneInHandler);
        for (const ZoneMove& move : walk_.moves) {
          interrupted_at_ = move.interrupted_at;
          Do(frames, move);
        }
        interrupted_at_ = 0;
        while (!open_.empty()) Leave(frames);
        g_handlers_frames = nullptr;  // Zones after the last mark are not in the results.
      }
      Mark(frames);
      Judge(frames);
    }
    if (fake_ && !fake_->Leaks().empty()) Wrong("leaks " + fake_->Leaks());
    return wrong_;
  }

 private:
  struct OpenZone {
    std::string path;
    std::unique_ptr<FrameCounter::Zone> object;  // Or entered by Enter.
    bool entered = true;                         // While counting was enabled
    bool counted = true;                         // which it has been since.
    bool ended = false;                          // On another thread.
    Reading outside{}, inside{};                 // Before and after it was entered, or the last mark.
  };

  void Do(FrameCounter& frames, const ZoneMove& move) {
    switch (move.kind) {
      case ZoneMove::Kind::kEnter:
      case ZoneMove::Kind::kConstruct:
        return Enter(frames, kZoneNames[move.amount - 1], move.kind == ZoneMove::Kind::kConstruct);
      case ZoneMove::Kind::kLeave:
        if (!open_.empty()) Leave(frames);
        return;
      case ZoneMove::Kind::kEndElsewhere:
        if (move.amount <= open_.size() && open_[open_.size() - move.amount].object != nullptr)
          EndElsewhere(open_[open_.size() - move.amount]);
        return;
      case ZoneMove::Kind::kTouch: return memory_.Forget(), memory_.Touch(0, move.amount);
      case ZoneMove::Kind::kSwitchAway: return testing::SwitchAway();
      case ZoneMove::Kind::kMark: return Mark(frames);
      case ZoneMove::Kind::kWorker: return Work(frames, move.amount, false);
      case ZoneMove::Kind::kSwitchWorker: return Work(frames, move.amount, true);
      case ZoneMove::Kind::kFork: return Fork(frames);
      case ZoneMove::Kind::kSampling:
        if (sampling_) return sampling_.reset();
        return (void)sampling_.emplace(false);
      case ZoneMove::Kind::kSetEnabled: SetEnabled(frames, !frames.enabled()); return HasNothingOpen(frames);
      case ZoneMove::Kind::kKinds: return;
    }
  }

  // Calls `body`, which a handler interrupts if the move says so.
  template <class Body>
  void Interruptible(Body&& body) {
    if (interrupted_at_ == 0 || !walk_.interrupted) return body();
    testing::InterruptAt(interrupted_at_, ZoneInHandler, body);
  }

  void Enter(FrameCounter& frames, const char* name, bool construct) {
    OpenZone zone{.path = Here() + "/" + name,
                  .object = {},
                  .entered = frames.enabled(),
                  .counted = frames.enabled(),
                  .outside = raw_.Now()};
    if (construct) {
      Interruptible([&] { zone.object = std::make_unique<FrameCounter::Zone>(frames, ZoneId{name}); });
    } else {
      Interruptible([&] { frames.Enter({name}); });
    }
    zone.inside = raw_.Now();
    if (zone.counted) g_handlers_frames = &frames;
    open_.push_back(std::move(zone));
  }

  void Leave(FrameCounter& frames) {
    OpenZone zone = std::move(open_.back());
    open_.pop_back();
    const Reading inside = raw_.Now();
    if (zone.object != nullptr) {
      Interruptible([&] { zone.object.reset(); });
    } else {
      // One that was entered while counting was disabled, or before, is only counted as a mistake.
      Interruptible([&] { frames.Leave(); });
    }
    const Reading outside = raw_.Now();
    if (!zone.counted) return PopEnded();
    KnownZone& known = frame_[zone.path];
    ++known.calls;
    known.AddLeast(zone.inside, inside);
    known.AddMost(zone.outside, outside);
    PopEnded();
  }

  // The zone stays around the zones inside of it until they have ended.
  void EndElsewhere(OpenZone& zone) {
    std::thread([&] { zone.object.reset(); }).join();
    if (zone.entered) ++ended_elsewhere_;
    zone.ended = true;
    if (zone.counted) frame_[zone.path].may_lack = true;
    PopEnded();
  }

  // Removes the innermost zones that have ended.
  void PopEnded() {
    for (; !open_.empty() && open_.back().ended; open_.pop_back()) {
      const OpenZone& zone = open_.back();
      if (!zone.counted) continue;
      ++frame_[zone.path].elsewhere;
      frame_[zone.path].AddMost(zone.outside, raw_.Now());
    }
  }

  // Ends the frame. The parts of the open zones before it are counted.
  void Mark(FrameCounter& frames) {
    const Reading before = raw_.Now();
    std::map<std::string, KnownZone> ended = std::exchange(frame_, {});  // The callback's zone is in the next one.
    handlers_before_frame_ = g_handlers_zones;
    Interruptible([&] { frames.Mark(); });
    if (frames.enabled()) g_handlers_frames = &frames;
    const Reading after = raw_.Now();
    if (!frames.enabled()) return;
    for (OpenZone& zone : open_) {
      if (!zone.counted) continue;
      if (!zone.ended) ended[zone.path].AddLeast(zone.inside, before);
      ended[zone.path].AddMost(zone.outside, after);
      zone.inside = after;
      zone.outside = before;
    }
    for (const auto& [path, known] : ended) known_[path].Add(known);
  }

  void ZoneInCallback(FrameCounter& frames) {
    const std::string path = Here() + "/hitch";
    const Reading outside = raw_.Now();
    {
      const FrameCounter::Zone zone(frames, {"hitch"});
      memory_.Touch(0, 1);
    }
    KnownZone& known = frame_[path];
    ++known.calls;
    known.AddMost(outside, raw_.Now());
  }

  // Disabled in a frame, it counts nothing of it.
  void SetEnabled(FrameCounter& frames, bool enabled) {
    if (!enabled) {
      frame_.clear();
      for (OpenZone& zone : open_) zone.counted = false;
    }
    frames.SetEnabled(enabled);
    if (enabled) return;
    g_handlers_frames = nullptr;
    uncounted_handlers_ += g_handlers_zones - handlers_before_frame_;
    handlers_before_frame_ = g_handlers_zones;
  }

  void HasNothingOpen(const FrameCounter& frames) {
    if (!frames.enabled() && fake_ && !fake_->Leaks().empty()) Wrong("disabled, it has " + fake_->Leaks());
  }

  // A worker's zone that is open while counting is disabled may or may not be counted. The worker lives on, with
  // nothing open.
  void Work(FrameCounter& frames, uint32_t pages, bool switches) {
    enum : int { kBegun, kInside, kGoOn, kOutside, kEnd };
    std::atomic<int> state = kBegun;
    const auto set = [&](int next) {
      state = next;
      state.notify_all();
    };
    const bool counted = frames.enabled();
    KnownZone known;
    std::thread worker([&] {
      const RawEvents raw;
      testing::FreshPages memory(std::size(kZoneNames));
      const Reading outside = raw.Now();
      frames.Enter({"job"});
      const Reading inside = raw.Now();
      set(kInside);
      state.wait(kInside);
      memory.Touch(0, pages);
      const Reading inside_end = raw.Now();
      frames.Leave();
      known.AddMost(outside, raw.Now());
      if (!switches) known.AddLeast(inside, inside_end);
      set(kOutside);
      state.wait(kOutside);
    });
    state.wait(kBegun);
    if (switches) SetEnabled(frames, !counted);
    set(kGoOn);
    state.wait(kGoOn);
    HasNothingOpen(frames);
    set(kEnd);
    worker.join();
    if (!counted) return;
    ++(switches ? known.more_calls : known.calls);
    known_["workers"].Add(known);
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
    if (!fine) Wrong("the child of a fork ended");
  }

  // The path of the innermost zone that is counted.
  std::string Here() const {
    const auto zone = std::find_if(open_.rbegin(), open_.rend(), [](const OpenZone& open) { return open.counted; });
    return zone == open_.rend() ? "" : zone->path;
  }

  void Judge(const FrameCounter& frames) {
    const std::vector<ZoneStats> zones = frames.zones();
    const FrameStats stats = frames.Stats();
    std::map<std::string, KnownZone> left = known_;
    std::vector<std::string> paths;
    uint64_t handlers_zones = 0;
    for (const ZoneStats& zone : zones) {
      const bool root = zone.depth == 0;
      paths.push_back(root ? "" : zone.thread.empty() ? paths[zone.parent] + "/" + zone.name : zone.thread);
      if (root) continue;
      if (zone.name == "handler") {
        handlers_zones += zone.calls;
        continue;
      }
      const std::string wrong = JudgeZone(frames, zone, std::exchange(left[paths.back()], {}));
      if (!wrong.empty()) Wrong(paths.back() + ": " + wrong);
    }
    for (const auto& [path, known] : left) {
      if (known.calls != 0 || known.elsewhere != 0) Wrong("a zone is missing: " + path);
    }
    if (const std::string wrong = JudgeSums(zones); !wrong.empty()) Wrong(wrong);
    // A handler that interrupted a change has its zone dropped.
    const uint64_t known = handlers_zones + stats.dropped;
    if (known > g_handlers_zones || known + uncounted_handlers_ < g_handlers_zones) {
      Wrong(absl::StrFormat("handlers entered %d zones, of which %d may be uncounted: %d are counted, %d dropped",
                            g_handlers_zones, uncounted_handlers_, handlers_zones, stats.dropped));
    }
    if (stats.cross_thread != ended_elsewhere_) {
      Wrong(absl::StrFormat("%d zones ended elsewhere, and %d did", stats.cross_thread, ended_elsewhere_));
    }
  }

  std::string JudgeZone(const FrameCounter& frames, const ZoneStats& zone, const KnownZone& known) const {
    if (zone.calls < known.calls || zone.calls > known.calls + known.more_calls) {
      return absl::StrFormat("%d calls, and %d + %d were made", zone.calls, known.calls, known.more_calls);
    }
    if (zone.at_least ? known.elsewhere == 0 && !known.may_lack : known.elsewhere != 0) {
      return absl::StrFormat("at_least is %d, and %d calls ended elsewhere", zone.at_least, known.elsewhere);
    }
    for (size_t i = 0; i < kZoneEvents; ++i) {
      const Count& count = zone.total[i];
      if (!count.validity.counted() || !raw_.has(i) || frames.path(i) == ReadPath::kUsage) continue;
      if (count.value >= known.least[i] && count.value <= known.most[i]) continue;
      return absl::StrFormat("event %d by %s: %d, and the kernel says %d to %d", i,
                             std::string(ReadPathName(frames.path(i))), count.value, known.least[i], known.most[i]);
    }
    return "";
  }

  // The first thing that is wrong is told.
  void Wrong(std::string what) {
    if (wrong_.empty()) wrong_ = std::move(what);
  }

  const ZoneWalk& walk_;
  std::optional<testing::FakeKernel> fake_;  // Not for handlers: it locks and allocates.
  const RawEvents raw_;
  std::optional<testing::RawSampling> sampling_;
  testing::FreshPages memory_{8};
  uint32_t interrupted_at_ = 0;  // The move's.
  std::vector<OpenZone> open_;
  std::map<std::string, KnownZone> known_;  // By path; those of all workers together.
  std::map<std::string, KnownZone> frame_;  // The same of the main frame under way.
  uint64_t handlers_before_frame_ = 0;      // Zones of handlers before the latest mark.
  uint64_t uncounted_handlers_ = 0;         // At most that many were in frames that disabling ended.
  uint64_t ended_elsewhere_ = 0;
  std::string wrong_;
};

void WalkZonesFor(uint64_t seconds) {
  const auto run = [](const ZoneWalk& walk) { return ZoneWalker(walk).Go(); };
  WalkFor(seconds, "zones", MakeZoneWalk, run, [](auto& shrinker) {
    shrinker.Try([](ZoneWalk& less) { less.no_mapping = 0; });
    shrinker.Try([](ZoneWalk& less) { less.interrupted = false; });
    shrinker.Try([](ZoneWalk& less) { less.all_hitches = false; });
    shrinker.Try([](ZoneWalk& less) {
      for (ZoneMove& move : less.moves) move.interrupted_at = 0;
    });
    shrinker.TryWithout(&ZoneWalk::moves);
  });
}

TEST_CASE("random zones, frames and workers: no count is wrong", "[zone_walk][law]") {
  if (testing::kSanitized) SKIP_TEST("a sanitizer's runtime has faults of its own");
  WalkZonesFor(kUsualSeconds);
}

TEST_CASE("random zones, frames and workers, for long", "[zone_walk][.heavy][law]") { WalkZonesFor(kHeavySeconds); }

}  // namespace
}  // namespace perfkit::walk
