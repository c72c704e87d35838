// One ray a pixel: it meets the ground, with a grid on it that fades in the distance, or the sky.
#include "backdrop.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace game {
namespace {

constexpr Vec3 kZenith = {16, 24, 46}, kHorizon = {92, 108, 138}, kGround = {58, 66, 80}, kLine = {78, 88, 106};

Vec3 Mix(Vec3 a, Vec3 b, float t) { return a + (b - a) * std::clamp(t, 0.0f, 1.0f); }

// 1 on a line of the grid (every two units), 0 away from it; `blur` is what a pixel covers there.
float GridLine(float at, float blur) {
  const float distance = std::fabs(at / 2 - std::round(at / 2)) * 2;
  return std::clamp(1 - (distance - 0.015f) / blur, 0.0f, 1.0f);
}

Vec3 ColourAlong(Vec3 ray, Vec3 eye, float light) {
  if (ray.y >= -1e-3f) return Mix(kHorizon, kZenith, std::sqrt(std::max(ray.y, 0.0f)) * 1.35f);
  const float distance = -eye.y / ray.y;
  const Vec3 at = eye + ray * distance;
  const float blur = distance * 0.004f;
  const float line = std::max(GridLine(at.x, blur), GridLine(at.z, blur)) / (1 + distance * 0.03f);
  return Mix(Mix(kGround, kLine, line) * light, kHorizon, 1 - std::exp(-distance * 0.014f));
}

TexturePtr Trace(SDL_Renderer* renderer, const Camera& camera, float light) {
  std::vector<uint8_t> pixels;
  pixels.reserve(size_t{Screen::kWidth} * Screen::kHeight * 4);
  for (int y = 0; y < Screen::kHeight; ++y) {
    for (int x = 0; x < Screen::kWidth; ++x) {
      const Vec3 ray = camera.RayThrough(static_cast<float>(x), static_cast<float>(y));
      const Vec3 colour = ColourAlong(ray, camera.eye(), light);
      // Half a step of noise: eight bits alone show bands in a dark sky.
      const float noise = Random01(static_cast<unsigned>(y * Screen::kWidth + x));
      for (float channel : {colour.z, colour.y, colour.x}) pixels.push_back(static_cast<uint8_t>(channel + noise));
      pixels.push_back(255);
    }
  }
  TexturePtr texture(
      SDL_CreateTexture(renderer, SDL_PIXELFORMAT_ARGB8888, SDL_TEXTUREACCESS_STATIC, Screen::kWidth, Screen::kHeight));
  SDL_UpdateTexture(texture.get(), nullptr, pixels.data(), 4 * Screen::kWidth);
  SDL_SetTextureBlendMode(texture.get(), SDL_BLENDMODE_NONE);
  return texture;
}

}  // namespace

Backdrop::Backdrop(SDL_Renderer* renderer, const Camera& camera)
    : lit(Trace(renderer, camera, 1)), shaded(Trace(renderer, camera, kShade)) {}

}  // namespace game
