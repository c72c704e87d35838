// A closed socket would not end a child: processes that are started later inherit the parent's side. So the last
// message says so.
#include "bench/support/turn_process.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "src/sys/clock.h"

namespace bench {
namespace {

enum class Turn : uint8_t { kWork, kEnd };

// Both return false if the other process has ended.
template <class Message>
bool Send(int channel, const Message& message) {
  return send(channel, &message, sizeof(message), MSG_NOSIGNAL) == ssize_t{sizeof(message)};
}
template <class Message>
bool Receive(int channel, Message& message) {
  return recv(channel, &message, sizeof(message), 0) == ssize_t{sizeof(message)};
}

double NsOn(clockid_t clock) { return static_cast<double>(perfkit::sys::ClockNs(clock)); }

}  // namespace

double Sum(std::span<const TurnCost> turns, double TurnCost::*field) {
  double sum = 0;
  for (const TurnCost& turn : turns) sum += turn.*field;
  return sum;
}

bool Turns::Take(const std::function<void()>& work) {
  if (!Send(channel_, true)) return false;
  double process_ns = 0;  // at the end of the turn before
  for (Turn turn{}; Receive(channel_, turn);) {
    if (turn == Turn::kEnd) return true;
    if (process_ns == 0) process_ns = NsOn(CLOCK_PROCESS_CPUTIME_ID);
    const double wall_ns = NsOn(CLOCK_MONOTONIC), cpu_ns = NsOn(CLOCK_THREAD_CPUTIME_ID);
    work();
    const TurnCost cost = {.wall_ns = NsOn(CLOCK_MONOTONIC) - wall_ns,
                           .cpu_ns = NsOn(CLOCK_THREAD_CPUTIME_ID) - cpu_ns,
                           .process_ns = NsOn(CLOCK_PROCESS_CPUTIME_ID) - process_ns};
    process_ns += cost.process_ns;
    if (!Send(channel_, cost)) return false;
  }
  return false;
}

absl::StatusOr<TurnProcess> TurnProcess::Start(const std::function<bool(Turns&)>& child) {
  std::array<int, 2> channel{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel.data()) != 0) {
    return absl::ErrnoToStatus(errno, "socketpair");
  }
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(channel[0]);
    Turns turns(channel[1]);
    _exit(child(turns) ? 0 : 1);
  }
  close(channel[1]);
  TurnProcess process(pid, channel[0]);
  bool ready = false;
  if (pid < 0 || !Receive(process.channel_, ready)) {
    return absl::UnavailableError("the work can't be done or sampled here");
  }
  return process;
}

TurnProcess::TurnProcess(TurnProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), channel_(std::exchange(other.channel_, -1)) {}

TurnProcess::~TurnProcess() {
  if (channel_ < 0) return;
  (void)Send(channel_, Turn::kEnd);  // fails if the child has ended
  close(channel_);
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
}

absl::StatusOr<TurnCost> TurnProcess::TakeTurn() {
  TurnCost cost;
  if (!Send(channel_, Turn::kWork) || !Receive(channel_, cost)) return absl::UnavailableError("the child has ended");
  return cost;
}

absl::StatusOr<std::vector<std::vector<TurnCost>>> TakeTurns(std::span<TurnProcess> processes, int turns,
                                                             std::mt19937& random) {
  std::vector<std::vector<TurnCost>> costs(processes.size());
  std::vector<size_t> order(processes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (int turn = 0; turn < turns; ++turn) {
    std::shuffle(order.begin(), order.end(), random);
    for (const size_t process : order) {
      const absl::StatusOr<TurnCost> cost = processes[process].TakeTurn();
      if (!cost.ok()) return cost.status();
      costs[process].push_back(*cost);
    }
  }
  return costs;
}

}  // namespace bench
