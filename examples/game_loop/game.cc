// One frame: load what the level needs, move everything, draw it, mark the end. PERFKIT_ZONE names the parts; Bullet
// adds its own zones below "physics".
#include "game.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "level.h"

namespace game {
namespace {

constexpr size_t kSparks = 40'000;
constexpr size_t kChunkBytes = size_t{192} << 20;
constexpr int kFramesPerBall = 90, kFirstBall = 40;
constexpr int kFramesPerReport = 20;  // the tables of the HUD; a new one every frame could not be read

perfkit::FrameOptions CounterOptions(const GameOptions& options) {
  return {.events = {"task-clock", "page-faults", "context-switches", "cpu-migrations", "cycles", "instructions"},
          .hitch_budget = options.budget,
          .history_frames = 600};
}

double Ms(std::chrono::nanoseconds time) { return static_cast<double>(time.count()) / 1e6; }

}  // namespace

Game::Game(Screen& screen, const GameOptions& options)
    : screen_(screen),
      options_(options),
      chunk_frame_(options.budget.count() == 0 ? -1 : options.frames / 3),
      asset_frame_(options.budget.count() == 0 ? -1 : options.frames * 2 / 3),
      frames_(CounterOptions(options)),
      bullet_zones_(frames_),
      workers_(frames_),
      particles_(kSparks),
      view_(screen.renderer()),
      hud_(screen.renderer()) {
  frames_.OnHitch([this](const perfkit::Hitch& hitch) { hitches_.push_back(hitch); });
  if (options.hitches) planted_.emplace(frames_);
  for (size_t i = 0; i < frames_.size(); ++i) {
    events_.emplace_back(frames_.name(i));
    reasons_.emplace_back(frames_.reason(i));
  }
}

void Game::Run() {
  while (next_frame_ < options_.frames) PlayFrame();
}

void Game::PlayFrame() {
  RunFrame(next_frame_++);
  frames_.Mark();
}

void Game::RunFrame(int frame) {
  LoadLevel(frame);
  PlantHitches(frame);
  Update(frame);
  {
    PERFKIT_ZONE(frames_, "draw scene");
    view_.Draw(scene_.bodies(), particles_.all());
  }
  {
    PERFKIT_ZONE(frames_, "draw HUD");
    DrawHud(frame);
  }
  PERFKIT_ZONE(frames_, "present");
  if (frame + 1 < options_.frames) screen_.Present();
}

void Game::Update(int frame) {
  {
    PERFKIT_ZONE(frames_, "physics");
    if (frame % kFramesPerBall == kFirstBall) scene_.ThrowBall(static_cast<uint64_t>(frame));
    scene_.Step();
  }
  PERFKIT_ZONE(frames_, "particles");
  workers_.Run([this] { particles_.Update(); });
}

// A third into the game a chunk of the level comes in, two thirds in an asset is late.
void Game::LoadLevel(int frame) {
  if (frame == chunk_frame_) {
    PERFKIT_ZONE(frames_, "load level chunk");
    frames_.Keep("a chunk of the level");
    LoadLevelChunk(kChunkBytes);
    scene_.AddPyramid();
  }
  if (frame == asset_frame_) {
    PERFKIT_ZONE(frames_, "wait for asset");
    frames_.Keep("an asset that is late");
    WaitForAsset(2 * options_.budget);
  }
}

// One after the other, from the first to the last tenth of the game.
void Game::PlantHitches(int frame) {
  if (!planted_) return;
  const int distance = std::max(options_.frames / (Hitches::kKinds + 2), 3);
  const int kind = (frame + 1) / distance - 1;
  if (kind < 0 || kind >= Hitches::kKinds) return;
  PERFKIT_ZONE(frames_, "planted hitch");
  const int at = (frame + 1) % distance;
  if (at == 0) planted_->Prepare(kind);
  if (at == 1) {
    frames_.Keep(Hitches::Name(kind));
    planted_->Plant(kind);
  }
  if (at == 2) planted_->CleanUp();
}

void Game::DrawHud(int frame) {
  if (frame % kFramesPerReport == 0 || frame + 1 == options_.frames) zones_ = frames_.zones();
  hud_.Draw({.history = frames_.history(),
             .budget_ns = static_cast<uint64_t>(options_.budget.count()),
             .events = events_,
             .reasons = reasons_,
             .zones = zones_,
             .hitches = hitches_});
}

void Game::ShowHitch(const std::string& text) {
  screen_.Present();
  view_.Draw(scene_.bodies(), particles_.all());
  hud_.DrawText("A hitch, explained", text);
}

std::string Game::FormatHitch(int frame) const {
  for (const perfkit::Hitch& hitch : hitches_) {
    if (hitch.frame != static_cast<uint64_t>(frame)) continue;
    char text[400];
    std::snprintf(text, sizeof(text), "%.1f ms, worst zone '%s': %s\n", static_cast<double>(hitch.wall_ns) / 1e6,
                  hitch.worst_zone, hitch.cause);
    return text;
  }
  return "within the budget\n";
}

std::string Game::FormatProvoked() const {
  char chunk[100], asset[100];
  std::snprintf(chunk, sizeof(chunk), "  frame %d: touched %zu MiB of fresh memory. Seen: ", chunk_frame_,
                kChunkBytes >> 20);
  std::snprintf(asset, sizeof(asset), "  frame %d: waited %.0f ms for an asset. Seen: ", asset_frame_,
                Ms(2 * options_.budget));
  return std::string("provoked:\n") + chunk + FormatHitch(chunk_frame_) + asset + FormatHitch(asset_frame_);
}

}  // namespace game
