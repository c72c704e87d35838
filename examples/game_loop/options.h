// The demo's command line.
#pragma once

#include <string>

namespace game {

struct Options {
  int frames = 600;
  std::string picture = "game_loop.png";  // "": none
  std::string profile = "game_loop";      // the files' name without its ending; "": none
  bool hitches = false;
  bool help = false;
};

inline constexpr char kUsage[] =
    "usage: game_loop [--frames N] [--picture PATH | --no-picture] [--profile PATH | --no-profile] [--hitches] "
    "[--help]\n"
    "\n"
    "Runs a small game without a window: a wall of bricks under fire (Bullet), springs of sparks (TBB), a HUD "
    "(ImGui).\n"
    "perfkit counts each frame, each zone and each worker. After N frames (600) it prints the zones and the hitches "
    "with\n"
    "their causes, and writes the last frame as a picture (game_loop.png). It is sampled as well: a page "
    "(game_loop.html)\n"
    "and a trace for ui.perfetto.dev (game_loop.pftrace) show each thread's frames, zones and functions over time;\n"
    "game_loop_hitch.html, .pftrace and .png show one hitch: the longest wait for a lock, with its holder's stack.\n"
    "\n"
    "--hitches plants eight hitches, each of another kind, and prints the cause that perfkit finds for each.\n";

// False, with `error` set, for words that are not in kUsage.
bool ParseOptions(int argc, char** argv, Options* options, std::string* error);

}  // namespace game
