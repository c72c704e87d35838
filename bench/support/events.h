// The four software events that every case counts, and how perfkit is asked for them.
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

// Options for the system-call path alone, which is what peers are compared with like for like.
inline perfkit::CounterOptions GroupRead() { return {.only_path = perfkit::ReadPath::kGroupRead}; }

// Ends the case with the Status' text. True if it did.
template <class T>
bool Failed(benchmark::State& state, const absl::StatusOr<T>& result) {
  if (!result.ok()) state.SkipWithError(result.status().ToString().c_str());
  return !result.ok();
}

}  // namespace bench
