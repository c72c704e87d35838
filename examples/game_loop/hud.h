// The head-up display: what a FrameCounter knows, on top of the game that it counts.
#pragma once

#include <SDL.h>
#include <perfkit/frame.h>

#include <span>
#include <string>
#include <vector>

#include "sdl_imgui_renderer.h"

struct ImFont;

namespace game {

// What is shown. Views into others' data: build it anew for each Draw.
struct HudData {
  perfkit::FrameHistory history;
  uint64_t budget_ns = 0;
  std::span<const std::string> events;
  std::span<const std::string> reasons;  // by event: why it is not counted; "" when it is
  std::span<const perfkit::ZoneStats> zones;
  std::span<const perfkit::Hitch> hitches;
};

// Owns ImGui's context: one at a time. The main thread's.
class Hud {
 public:
  explicit Hud(SDL_Renderer* renderer);
  ~Hud();
  Hud(const Hud&) = delete;
  Hud& operator=(const Hud&) = delete;

  // Lays out and draws one frame.
  void Draw(const HudData& data);
  // Lays out and draws a text over all of the window, instead of a frame.
  void DrawText(const char* title, const std::string& text);

 private:
  // ImGui wants its context before the fonts, and the fonts before the renderer.
  struct Context {
    Context();
    ~Context();
    ImFont* title;
    ImFont* text;
    ImFont* mono;
  };
  Context context_;
  SdlImguiRenderer imgui_;
};

}  // namespace game
