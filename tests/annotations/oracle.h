// What annotated code did, by its own count, and a FrameCounter's zones in comparison.
#pragma once

#include <atomic>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "perfkit/annotations.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit::testing {

inline constexpr size_t kFaults = 0;

// A FrameCounter that annotated code uses as long as this lives.
class AnnotatedRun {
 public:
  AnnotatedRun() { UseAnnotations(&frames); }
  ~AnnotatedRun() { UseAnnotations(nullptr); }
  AnnotatedRun(const AnnotatedRun&) = delete;
  AnnotatedRun& operator=(const AnnotatedRun&) = delete;

  bool is_counted() const { return frames.reason(kFaults).empty(); }

  FrameCounter frames{{.events = {"page-faults", "task-clock"}}};
};

// The sums over all zones of a name, wherever they are.
struct ZoneSum {
  uint64_t calls = 0, self_faults = 0;
  bool operator==(const ZoneSum&) const = default;
};
using ZoneSums = std::map<std::string, ZoneSum>;

inline ZoneSums SumsOf(const FrameCounter& frames, std::string_view thread) {
  ZoneSums sums;
  for (const ZoneStats& zone : frames.zones()) {
    if (zone.thread != thread || zone.depth == 0) continue;
    sums[zone.name].calls += zone.calls;
    sums[zone.name].self_faults += zone.self[kFaults].value;
  }
  return sums;
}

// What one thread does: touches fresh pages in zones, and notes it.
class Engine {
 public:
  explicit Engine(size_t pages) : pages_(pages) {}

  // In the zone `name`: its call, and `pages` pages.
  void Did(const std::string& name, size_t pages) {
    ++expected_[name].calls;
    Touch(name, pages);
  }
  void Touch(const std::string& name, size_t pages) {
    pages_.Touch(next_, pages);
    next_ += pages;
    expected_[name].self_faults += pages;
  }

  // Compares calls exactly, and faults up to those of the thread that are not of `pages_`.
  void Check(const ZoneSums& counted, uint64_t others) const {
    for (const auto& [name, sum] : expected_) {
      INFO(name);
      const auto found = counted.find(name);
      REQUIRE(found != counted.end());
      CHECK(found->second.calls == sum.calls);
      CHECK(AreFaultsOf(found->second.self_faults, sum.self_faults, others));
    }
    CHECK(counted.size() == expected_.size());
  }
  uint64_t touched() const { return next_; }

 private:
  FreshPages pages_;
  size_t next_ = 0;
  ZoneSums expected_;
};

}  // namespace perfkit::testing
