// A painter's renderer: it has no depth buffer, so it draws what is far away first. Good enough for convex bodies that
// stand apart.
#include "scene_view.h"

#include <algorithm>
#include <cmath>

namespace game {
namespace {

constexpr int kBallPixels = 128;
constexpr int kSparkShades = 8;

SDL_Color Lit(const Body& body, float light) {
  const auto channel = [&](int c) { return static_cast<uint8_t>(std::min(body.rgb[c] * light, 255.0f)); };
  return {channel(0), channel(1), channel(2), 255};
}

float LightOn(Vec3 normal) { return kShade + (1.1f - kShade) * std::max(Dot(normal, kToSun), 0.0f); }

// Where the sun throws a point's shadow.
Vec3 OnGround(Vec3 point) { return point - kToSun * (point.y / kToSun.y); }

// The four corners of a box's face: `axis` and the sign of its side.
struct Face {
  Vec3 corners[4];
  Vec3 normal;

  Face(const Body& body, int axis, float sign) {
    const Vec3 out = body.half_axes[axis] * sign;
    const Vec3 u = body.half_axes[(axis + 1) % 3], v = body.half_axes[(axis + 2) % 3];
    const Vec3 middle = body.center + out;
    corners[0] = middle + u + v;
    corners[1] = middle - u + v;
    corners[2] = middle - u - v;
    corners[3] = middle + u - v;
    normal = Normalized(out);
  }
};

// A white sphere with a soft edge; each ball is a copy in its own colour.
TexturePtr MakeBall(SDL_Renderer* renderer) {
  std::vector<uint8_t> pixels;
  for (int y = 0; y < kBallPixels; ++y) {
    for (int x = 0; x < kBallPixels; ++x) {
      constexpr float kRadius = kBallPixels / 2.0f;
      const float dx = (static_cast<float>(x) + 0.5f - kRadius) / kRadius;
      const float dy = (kRadius - static_cast<float>(y) - 0.5f) / kRadius;
      const float inside = std::max(1 - dx * dx - dy * dy, 0.0f);
      const float light = std::min(LightOn({dx, dy, std::sqrt(inside)}) * 0.92f, 1.0f);
      const float alpha = std::clamp((1 - std::sqrt(dx * dx + dy * dy)) * kRadius / 2, 0.0f, 1.0f);
      for (int c = 0; c < 3; ++c) pixels.push_back(static_cast<uint8_t>(255 * light));
      pixels.push_back(static_cast<uint8_t>(255 * alpha));
    }
  }
  TexturePtr texture(
      SDL_CreateTexture(renderer, SDL_PIXELFORMAT_ARGB8888, SDL_TEXTUREACCESS_STATIC, kBallPixels, kBallPixels));
  SDL_UpdateTexture(texture.get(), nullptr, pixels.data(), 4 * kBallPixels);
  SDL_SetTextureBlendMode(texture.get(), SDL_BLENDMODE_BLEND);
  SDL_SetTextureScaleMode(texture.get(), SDL_ScaleModeLinear);
  return texture;
}

}  // namespace

SceneView::SceneView(SDL_Renderer* renderer)
    : renderer_(renderer),
      camera_({-3.2f, 5.0f, 18.0f}, {0.9f, 2.4f, 0}, 520, 480, 720),
      backdrop_(renderer, camera_),
      ball_(MakeBall(renderer)) {
  SDL_SetRenderDrawBlendMode(renderer_, SDL_BLENDMODE_BLEND);
}

void SceneView::Draw(std::span<const Body> bodies, std::span<const Particle> particles) {
  SDL_RenderCopy(renderer_, backdrop_.lit.get(), nullptr, nullptr);
  DrawShadows(bodies);
  DrawBodies(bodies);
  DrawSparks(particles);
}

// A body's shadow is the shadow of its faces towards the sun. It is painted with the shaded backdrop, which has no
// transparency, so shadows that overlap are no darker than one.
void SceneView::DrawShadows(std::span<const Body> bodies) {
  for (const Body& body : bodies) {
    if (body.radius != 0) continue;
    for (int axis = 0; axis < 3; ++axis) {
      Face face(body, axis, Dot(body.half_axes[axis], kToSun) > 0 ? 1.0f : -1.0f);
      for (Vec3& corner : face.corners) corner = OnGround(corner);
      AddQuad(face.corners, {255, 255, 255, 255}, true);
    }
  }
  Flush(backdrop_.shaded.get());
}

void SceneView::DrawBodies(std::span<const Body> bodies) {
  seen_.clear();
  for (const Body& body : bodies) {
    const float depth = camera_.Project(body.center).depth;
    if (depth > 1) seen_.push_back({&body, depth});
  }
  std::sort(seen_.begin(), seen_.end(), [](const Seen& a, const Seen& b) { return a.depth > b.depth; });
  for (const Seen& seen : seen_) {
    if (seen.body->radius == 0) {
      AddBox(*seen.body);
    } else {
      Flush(nullptr);
      DrawBall(*seen.body);
    }
  }
  Flush(nullptr);
}

void SceneView::AddBox(const Body& body) {
  for (int axis = 0; axis < 3; ++axis) {
    for (float sign : {-1.0f, 1.0f}) {
      const Face face(body, axis, sign);
      if (Dot(face.normal, camera_.eye() - face.corners[0]) <= 0) continue;
      AddQuad(face.corners, Lit(body, LightOn(face.normal)), false);
    }
  }
}

void SceneView::DrawBall(const Body& body) {
  const Pixel center = camera_.Project(body.center);
  const float radius = body.radius * camera_.PixelsAt(center.depth);
  const SDL_FRect to = {center.x - radius, center.y - radius, 2 * radius, 2 * radius};
  SDL_SetTextureColorMod(ball_.get(), body.rgb[0], body.rgb[1], body.rgb[2]);
  SDL_RenderCopyF(renderer_, ball_.get(), nullptr, &to);
}

// Sparks glow from white over yellow to a dull red as they age: one batch of points a shade, newest on top.
void SceneView::DrawSparks(std::span<const Particle> particles) {
  for (int shade = 0; shade < kSparkShades; ++shade) {
    const float low = static_cast<float>(shade) / kSparkShades, high = low + 1.0f / kSparkShades;
    sparks_.clear();
    for (const Particle& particle : particles) {
      if (particle.life <= low || particle.life > high) continue;
      const Pixel at = camera_.Project(particle.position);
      if (at.depth > 1) sparks_.push_back({at.x, at.y});
    }
    const float glow = high * high;
    SDL_SetRenderDrawColor(renderer_, 255, static_cast<uint8_t>(70 + 175 * glow),
                           static_cast<uint8_t>(20 + 160 * glow * glow), static_cast<uint8_t>(50 + 150 * high));
    SDL_RenderDrawPointsF(renderer_, sparks_.data(), static_cast<int>(sparks_.size()));
  }
}

void SceneView::AddQuad(const Vec3 (&corners)[4], SDL_Color colour, bool on_screen_texture) {
  SDL_Vertex quad[4];
  for (int i = 0; i < 4; ++i) {
    const Pixel at = camera_.Project(corners[i]);
    if (at.depth <= Camera::kNear) return;
    const SDL_FPoint texture = {at.x / Screen::kWidth, at.y / Screen::kHeight};
    const bool inside = texture.x >= 0 && texture.x <= 1 && texture.y >= 0 && texture.y <= 1;
    if (on_screen_texture && !inside) return;  // SDL refuses the whole batch for one such vertex
    quad[i] = {{at.x, at.y}, colour, on_screen_texture ? texture : SDL_FPoint{0, 0}};
  }
  for (int i : {0, 1, 2, 0, 2, 3}) vertices_.push_back(quad[i]);
}

void SceneView::Flush(SDL_Texture* texture) {
  if (!vertices_.empty())
    SDL_RenderGeometry(renderer_, texture, vertices_.data(), static_cast<int>(vertices_.size()), nullptr, 0);
  vertices_.clear();
}

}  // namespace game
