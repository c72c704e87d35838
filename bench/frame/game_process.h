// A game that is played in a process of its own, frame by frame, with or without something that samples it.
//
// Several processes take turns, frame by frame: what the machine does meanwhile, and how fast it is, meets them all
// alike.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace bench {

enum class Sampling : uint8_t {
  kNone,
  kBare,      // the kernel's part alone: bare_sampling.h
  kSignals,   // the same, with an empty signal handler
  kRecorder,  // a session that keeps slow frames
};

struct GameProcessOptions {
  Sampling sampling = Sampling::kNone;
  std::chrono::nanoseconds interval{};
  bool all = false;  // with kRecorder: also wakers, their stacks, and page faults
  int frames = 0;    // of the game
};

// What the thread that marks frames took for one.
struct PlayedFrame {
  double wall_ns = 0, cpu_ns = 0;
};

// Not thread-safe.
class GameProcess {
 public:
  // Errors: Unavailable if the game can't be played or sampled here.
  static absl::StatusOr<GameProcess> Start(const GameProcessOptions& options);
  GameProcess(GameProcess&& other) noexcept;
  GameProcess& operator=(GameProcess&&) = delete;
  ~GameProcess();  // ends the game

  // Waits for the next frame. Errors: Unavailable if the process has ended.
  absl::StatusOr<PlayedFrame> PlayFrame();

 private:
  GameProcess(pid_t pid, int channel) : pid_(pid), channel_(channel) {}

  pid_t pid_;
  int channel_;  // a socket: turns to the process, a PlayedFrame for each from it
};

}  // namespace bench
