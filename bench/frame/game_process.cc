// A child is forked, builds its game, says that it can play, and receives a Turn for each frame and for its end. A
// closed socket would not end it: processes that are started later inherit the parent's side.
#include "bench/frame/game_process.h"

#include <perfkit/session.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "bench/frame/bare_sampling.h"
#include "game.h"
#include "screen.h"
#include "src/sys/clock.h"

namespace bench {
namespace {

enum class Turn : uint8_t { kPlay, kEnd };

// Both return false if the other process has ended.
template <class Message>
bool Send(int channel, const Message& message) {
  return send(channel, &message, sizeof(message), MSG_NOSIGNAL) == ssize_t{sizeof(message)};
}
template <class Message>
bool Receive(int channel, Message& message) {
  return recv(channel, &message, sizeof(message), 0) == ssize_t{sizeof(message)};
}

perfkit::SessionOptions RecorderOptions(const GameProcessOptions& options, const game::Game& game) {
  return {.interval = options.interval,
          .clock = perfkit::SessionClock::kWall,
          .stacks = perfkit::SessionStacks::kLive,
          .frames = &game.frames(),
          .keep = perfkit::KeepFrames{},
          .wakers = options.all,
          .waker_stacks = options.all,
          .page_faults = options.all};
}

PlayedFrame Play(game::Game& game) {
  const uint64_t wall_ns = perfkit::sys::ClockNs(CLOCK_MONOTONIC);
  const uint64_t cpu_ns = perfkit::sys::ClockNs(CLOCK_THREAD_CPUTIME_ID);
  game.PlayFrame();
  return {.wall_ns = static_cast<double>(perfkit::sys::ClockNs(CLOCK_MONOTONIC) - wall_ns),
          .cpu_ns = static_cast<double>(perfkit::sys::ClockNs(CLOCK_THREAD_CPUTIME_ID) - cpu_ns)};
}

// Returns the exit code.
int PlayAsTold(const GameProcessOptions& options, int channel) {
  game::Screen screen;
  if (!screen.ok()) return 1;
  std::optional<BareSampling> bare;
  const bool signals = options.sampling == Sampling::kSignals;
  if (signals || options.sampling == Sampling::kBare) {
    if (!bare.emplace(options.interval, signals).opened()) return 1;
  }
  game::Game game(screen, {.frames = options.frames});
  absl::StatusOr<perfkit::Session> session = absl::UnavailableError("not asked for");
  if (options.sampling == Sampling::kRecorder) {
    session = perfkit::Session::Start(RecorderOptions(options, game));
    if (!session.ok()) return 1;
  }
  if (!Send(channel, true)) return 1;
  for (Turn turn{}; Receive(channel, turn) && turn == Turn::kPlay;) {
    if (!Send(channel, Play(game))) return 1;
  }
  return 0;
}

}  // namespace

absl::StatusOr<GameProcess> GameProcess::Start(const GameProcessOptions& options) {
  std::array<int, 2> channel{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel.data()) != 0) {
    return absl::ErrnoToStatus(errno, "socketpair");
  }
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(channel[0]);
    _exit(PlayAsTold(options, channel[1]));
  }
  close(channel[1]);
  GameProcess process(pid, channel[0]);
  bool can_play = false;
  if (pid < 0 || !Receive(process.channel_, can_play)) {
    return absl::UnavailableError("the game can't be played or sampled here");
  }
  return process;
}

GameProcess::GameProcess(GameProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), channel_(std::exchange(other.channel_, -1)) {}

GameProcess::~GameProcess() {
  if (channel_ < 0) return;
  (void)Send(channel_, Turn::kEnd);  // fails if the process has ended
  close(channel_);
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
}

absl::StatusOr<PlayedFrame> GameProcess::PlayFrame() {
  PlayedFrame frame;
  if (!Send(channel_, Turn::kPlay) || !Receive(channel_, frame)) return absl::UnavailableError("the game has ended");
  return frame;
}

}  // namespace bench
