// The demo: a small game that knows what each of its frames costs, and why some of them are late.
//
//   main.cc      the command line and the report          scene.cc       rigid bodies: Bullet
//   game.cc      the loop, with its zones                 particles.cc   sparks: TBB
//   bullet_zones.cc, workers.cc   perfkit put into both, without a change to either
//   hud.cc, hud_panels.cc         what a FrameCounter knows, drawn by ImGui and sdl_imgui_renderer.cc
//   scene_view.cc, backdrop.cc, screen.cc, png.cc         the picture
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>

#include "game.h"
#include "options.h"

namespace {

// Once, and only where it is so.
void SayWhatIsMissing(const perfkit::FrameCounter& frames) {
  for (size_t i = 0; i < frames.size(); ++i) {
    if (frames.reason(i).empty()) continue;
    const bool hardware = frames.name(i) == "cycles" || frames.name(i) == "instructions";
    std::printf("%s: %.*s%s\n", std::string(frames.name(i)).c_str(), static_cast<int>(frames.reason(i).size()),
                frames.reason(i).data(), hardware ? "\nNo cycles and no IPC here; the software counters follow." : "");
    if (hardware) return;  // what is true of one is true of all
  }
}

// Two and a half times what a frame takes here, and at least 20 ms: a budget that also means something on a slow or
// busy machine.
std::chrono::nanoseconds SuitableBudget(game::Screen& screen) {
  using std::chrono::nanoseconds, std::chrono::milliseconds;
  game::Game rehearsal(screen, {.frames = 40});
  rehearsal.Run();
  const auto median = static_cast<int64_t>(rehearsal.frames().zones().front().wall_quantiles.p50);
  return std::max<nanoseconds>(milliseconds(20), nanoseconds(median * 5 / 2));
}

int Run(const game::Options& options) {
  game::Screen screen;
  if (!screen.ok()) {
    std::fprintf(stderr, "game_loop: no screen: %s\n", SDL_GetError());
    return 1;
  }
  game::Game game(screen, {.frames = options.frames, .budget = SuitableBudget(screen)});
  SayWhatIsMissing(game.frames());
  game.Run();
  std::fputs(game.frames().FormatZones().c_str(), stdout);
  std::printf("\n%s", game.FormatProvoked().c_str());
  if (options.picture.empty()) return 0;
  std::string reason;
  if (!screen.SavePicture(options.picture, &reason)) {
    std::fprintf(stderr, "game_loop: cannot write %s: %s\n", options.picture.c_str(), reason.c_str());
    return 1;
  }
  std::printf("\nPicture: %s\n", std::filesystem::absolute(options.picture).c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  game::Options options;
  std::string error;
  if (!game::ParseOptions(argc, argv, &options, &error)) {
    std::fprintf(stderr, "game_loop: %s\n%s", error.c_str(), game::kUsage);
    return 2;
  }
  if (options.help) {
    std::fputs(game::kUsage, stdout);
    return 0;
  }
  return Run(options);
}
