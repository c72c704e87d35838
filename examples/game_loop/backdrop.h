// What never moves: sky and ground, traced once for each pixel; and the same with the sun gone, for shadows.
#pragma once

#include <SDL.h>

#include "camera.h"
#include "screen.h"

namespace game {

// Where light comes from, and the part of it that is left in a shadow.
inline constexpr Vec3 kToSun = {-0.657f, 0.679f, 0.329f};
inline constexpr float kShade = 0.5f;

struct Backdrop {
  Backdrop(SDL_Renderer* renderer, const Camera& camera);

  TexturePtr lit, shaded;  // Screen::kWidth x kHeight
};

}  // namespace game
