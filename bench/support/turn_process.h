// Child processes that take turns: each does a piece of work when it is told to, while the others wait. So what the
// machine does meanwhile, and how fast it is, meets them all alike.
#pragma once

#include <sys/types.h>

#include <functional>
#include <random>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace bench {

// What a turn took.
struct TurnCost {
  double wall_ns = 0;
  double cpu_ns = 0;      // of the thread that works
  double process_ns = 0;  // of all threads of its process, since its turn before; of the first turn, its own
};

// The sums of one field.
double Sum(std::span<const TurnCost> turns, double TurnCost::*field);

// The child's side.
class Turns {
 public:
  explicit Turns(int channel) : channel_(channel) {}

  // Says that the child is ready, then works at each turn. Returns after the last one: true, or false if the parent has
  // ended.
  bool Take(const std::function<void()>& work);

 private:
  const int channel_;
};

// Not thread-safe.
class TurnProcess {
 public:
  // Forks, and waits until the child is ready. `child` is called in it, and returns false for an error.
  // Errors: Unavailable if it has ended before.
  static absl::StatusOr<TurnProcess> Start(const std::function<bool(Turns&)>& child);
  TurnProcess(TurnProcess&& other) noexcept;
  TurnProcess& operator=(TurnProcess&&) = delete;
  ~TurnProcess();  // ends the child, and waits for that

  // Waits for the child's next turn. Errors: Unavailable if it has ended.
  absl::StatusOr<TurnCost> TakeTurn();

 private:
  TurnProcess(pid_t pid, int channel) : pid_(pid), channel_(channel) {}

  pid_t pid_;
  int channel_;  // a socket: turns to the child, a TurnCost for each from it
};

// Gives each of the processes `turns` turns, in an order that is random each time. Returns the costs, by process.
// Errors: as TakeTurn.
absl::StatusOr<std::vector<std::vector<TurnCost>>> TakeTurns(std::span<TurnProcess> processes, int turns,
                                                             std::mt19937& random);

}  // namespace bench
