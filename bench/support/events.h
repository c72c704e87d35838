// The four software events that all cases count, and how perfkit opens them.
#pragma once

#include <benchmark/benchmark.h>
#include <perfkit/counter.h>

#include <array>
#include <initializer_list>

namespace bench {

inline constexpr std::array<perfkit::EventType, 4> kFour = {perfkit::event::kTaskClock, perfkit::event::kPageFaults,
                                                            perfkit::event::kContextSwitches,
                                                            perfkit::event::kCpuMigrations};

inline std::vector<perfkit::EventSpec> Four() { return {kFour.begin(), kFour.end()}; }

// Options for the path by system calls alone, which is comparable with peers.
inline perfkit::CounterOptions GroupRead() { return {.only_path = perfkit::ReadPath::kGroupRead}; }

// Ends the case with the Status' text if it is an error, and returns true.
template <class T>
bool Failed(benchmark::State& state, const absl::StatusOr<T>& result) {
  if (!result.ok()) state.SkipWithError(result.status().ToString().c_str());
  return !result.ok();
}

}  // namespace bench
