// The calibration of what zones cost themselves.
#include "src/count/frame/own_cost.h"

#include <sys/resource.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "perfkit/frame_counter.h"
#include "src/count/frame/frame_counter_impl.h"
#include "tests/support/fake_kernel.h"

namespace perfkit {
namespace {

TEST_CASE("frames: the own cost is known whatever the limits are") {
  for (const auto& [zones, depth] : {std::pair<size_t, size_t>{1, 64}, {2, 64}, {256, 1}}) {
    FrameCounter frames({.events = {"page-faults"}, .max_zones = zones, .max_depth = depth});
    INFO(zones << " zones, depth " << depth);
    CHECK(count::FrameCounterImpl::Of(frames)->own_cost().zone_ns() > 0);
  }
}

// While it exists, no file can be opened.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before_) == 0);
    rlimit none = before_;
    none.rlim_cur = 0;
    REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  }
  ~NoMoreFiles() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoMoreFiles(const NoMoreFiles&) = delete;
  NoMoreFiles& operator=(const NoMoreFiles&) = delete;

 private:
  rlimit before_{};
};

TEST_CASE("frames: that a thread reads by other paths than the own cost is of, is told") {
  FrameCounter frames({.events = {"task-clock", "page-faults"}});
  const count::EventPlan& plan = count::FrameCounterImpl::Of(frames)->plan();
  const auto told = [&frames] {
    return frames.FormatZones().find("some threads read events by other paths") != std::string::npos;
  };
  const auto run_worker = [&frames] { std::thread([&frames] { PERFKIT_ZONE(frames, "zone"); }).join(); };
  frames.Mark();
  run_worker();
  frames.Mark();
  CHECK(told() == plan.has_other_paths());  // False, if each thread may lock memory for rings.
  {
    const NoMoreFiles no_more_files;
    run_worker();
  }
  frames.Mark();
  const bool needs_files = frames.path(1) == ReadPath::kGroupRead || frames.path(1) == ReadPath::kRing;
  INFO(ReadPathName(frames.path(1)));
  if (needs_files) CHECK(plan.has_other_paths());
  CHECK(told() == plan.has_other_paths());
}

TEST_CASE("frames: the first zone of a further thread reads no rights") {
  static std::atomic<int> read{0};
  testing::FakeKernel fake;
  fake.below().open = [](const char* path, int flags) {
    if (std::string_view(path).find("perf_event_paranoid") != std::string_view::npos) ++read;
    return sys::kLinux.open(path, flags);
  };
  FrameCounter frames({.events = {"task-clock", "page-faults", "context-switches", "cpu-migrations"}});
  frames.Mark();
  const bool counted = frames.reason(3).empty();
  read = 0;
  std::thread([&] { const FrameCounter::Zone zone(frames, {"work"}); }).join();
  CHECK(read <= (counted ? 0 : 1));
}

}  // namespace
}  // namespace perfkit
