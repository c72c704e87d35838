// A child builds its game, and what samples it, before its first turn.
#include "bench/frame/game_turns.h"

#include <perfkit/session.h>

#include <optional>

#include "absl/status/status.h"
#include "bench/support/bare_sampling.h"
#include "game.h"
#include "screen.h"

namespace bench {
namespace {

perfkit::SessionOptions RecorderOptions(const GameOptions& options, const game::Game& game) {
  return {.interval = options.interval,
          .clock = perfkit::SessionClock::kWall,
          .stacks = perfkit::SessionStacks::kLive,
          .frames = &game.frames(),
          .keep = perfkit::KeepFrames{},
          .wakers = options.all,
          .waker_stacks = options.all,
          .page_faults = options.all};
}

// In the child.
bool Play(const GameOptions& options, Turns& turns) {
  game::Screen screen;
  if (!screen.ok()) return false;
  std::optional<BareSampling> bare;
  const bool signals = options.sampling == Sampling::kSignals;
  if (signals || options.sampling == Sampling::kBare) {
    if (!bare.emplace(options.interval, signals).opened()) return false;
  }
  game::Game game(screen, {.frames = options.frames});
  absl::StatusOr<perfkit::Session> session = absl::UnavailableError("not asked for");
  if (options.sampling == Sampling::kRecorder) {
    session = perfkit::Session::Start(RecorderOptions(options, game));
    if (!session.ok()) return false;
  }
  return turns.Take([&game] { game.PlayFrame(); });
}

}  // namespace

absl::StatusOr<TurnProcess> StartGame(const GameOptions& options) {
  return TurnProcess::Start([&options](Turns& turns) { return Play(options, turns); });
}

}  // namespace bench
