// Sets that many tests of counting open.
#pragma once

#include <dirent.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "perfkit/counter.h"
#include "tests/support/work.h"

namespace perfkit {

inline const std::vector<EventSpec> kFour = {event::kTaskClock, event::kPageFaults, event::kContextSwitches,
                                             event::kCpuMigrations};

// What every user may read by the kernel: switches and migrations are raised in it.
inline const std::vector<EventSpec> kByKernel = {event::kTaskClock, event::kPageFaults, event::kMinorFaults,
                                                 event::kCpuClock};

inline CounterOptions Only(ReadPath path) {
  CounterOptions options;
  options.only_path = path;
  return options;
}

inline size_t OpenDescriptors() {
  size_t count = 0;
  DIR* const folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

inline CounterSet MustOpen(std::span<const EventSpec> events, const CounterOptions& options = {}) {
  absl::StatusOr<CounterSet> set = CounterSet::Open(events, Target::ThisThread(), options);
  INFO(set.status().ToString());
  REQUIRE(set.ok());
  return *std::move(set);
}

// Reads `now`, and returns the thread's switches at the same moment: the thread is not switched in between. Returns
// nullopt if the set has no page that proves this, as where perf is refused.
inline std::optional<uint64_t> SwitchesAt(const CounterSet& set, Snapshot& now) {
  constexpr int kTries = 10'000;
  for (int i = 0; i < kTries; ++i) {
    Snapshot again;
    set.Read(now);
    const uint64_t switches = testing::SwitchesByUsage();
    set.Read(again);
    if (now.epoch == again.epoch) return switches;
  }
  return std::nullopt;
}

}  // namespace perfkit
