// A game that is played in a process of its own, one frame a turn, with or without something that samples it.
#pragma once

#include <chrono>
#include <cstdint>

#include "absl/status/statusor.h"
#include "bench/support/turn_process.h"

namespace bench {

enum class Sampling : uint8_t {
  kNone,
  kBare,      // the kernel's part alone: bare_sampling.h
  kSignals,   // the same, with an empty signal handler
  kRecorder,  // a session that keeps slow frames
};

struct GameOptions {
  Sampling sampling = Sampling::kNone;
  std::chrono::nanoseconds interval{};
  bool all = false;  // with kRecorder: also wakers, their stacks, and page faults
  int frames = 0;    // of the game
};

// Errors: Unavailable if the game can't be played or sampled here.
absl::StatusOr<TurnProcess> StartGame(const GameOptions& options);

}  // namespace bench
