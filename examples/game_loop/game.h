// The game: its parts, and the loop that runs them and counts what they cost.
#pragma once

#include <perfkit/frame_counter.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "bullet_zones.h"
#include "hitches.h"
#include "hud.h"
#include "particles.h"
#include "scene.h"
#include "scene_view.h"
#include "screen.h"
#include "workers.h"

namespace game {

struct GameOptions {
  int frames = 600;
  // What a frame may take. 0: no frame is late, and nothing is provoked.
  std::chrono::nanoseconds budget{0};
  bool hitches = false;  // Plants one of each kind.
};

class Game {
 public:
  // `screen` must be ok().
  Game(Screen& screen, const GameOptions& options);

  // All frames, from the first to the last, which stays on the screen.
  void Run();
  // The next frame alone. Requires that there is one.
  void PlayFrame();

  // After Run: instead of the last frame, an explained one.
  void ShowHitch(const std::string& text);

  const perfkit::FrameCounter& frames() const { return frames_; }

  // Where a hitch was provoked, and what perfkit said of it.
  std::string FormatProvoked() const;

 private:
  void RunFrame(int frame);
  void Update(int frame);
  void LoadLevel(int frame);
  void DrawHud(int frame);
  void PlantHitches(int frame);
  std::string FormatHitch(int frame) const;

  Screen& screen_;
  const GameOptions options_;
  int next_frame_ = 0;
  const int chunk_frame_, asset_frame_;  // where hitches are provoked; -1: nowhere
  perfkit::FrameCounter frames_;
  BulletZones bullet_zones_;
  Workers workers_;
  Scene scene_;
  Particles particles_;
  SceneView view_;
  Hud hud_;
  std::optional<Hitches> planted_;
  // What the HUD shows of `frames_`, renewed now and then.
  std::vector<std::string> events_, reasons_;
  std::vector<perfkit::ZoneStats> zones_;
  std::vector<perfkit::Hitch> hitches_;  // all; a FrameCounter keeps the last ones only
};

}  // namespace game
