// Draws what ImGui wants drawn with SDL's 2D renderer. Debian's libimgui has no such backend compiled in.
#pragma once

#include <SDL.h>

#include "screen.h"

struct ImDrawData;
struct ImDrawList;

namespace game {

// Owns ImGui's font texture. An ImTextureID is an SDL_Texture*. Needs a current ImGui context; dies before `renderer`.
class SdlImguiRenderer {
 public:
  // Add fonts before.
  explicit SdlImguiRenderer(SDL_Renderer* renderer);

  void Render(const ImDrawData& data);

 private:
  void RenderList(const ImDrawData& data, const ImDrawList& list);

  SDL_Renderer* renderer_;
  TexturePtr fonts_;
};

}  // namespace game
