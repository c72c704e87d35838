// Draws the scene: backdrop, shadows, bodies from far to near, sparks.
#pragma once

#include <SDL.h>

#include <span>
#include <vector>

#include "backdrop.h"
#include "camera.h"
#include "particles.h"
#include "scene.h"
#include "screen.h"

namespace game {

class SceneView {
 public:
  explicit SceneView(SDL_Renderer* renderer);

  void Draw(std::span<const Body> bodies, std::span<const Particle> particles);

 private:
  struct Seen {
    const Body* body;
    float depth;
  };

  void DrawShadows(std::span<const Body> bodies);
  void DrawBodies(std::span<const Body> bodies);
  void AddBox(const Body& body);
  void DrawBall(const Body& body);
  void DrawSparks(std::span<const Particle> particles);
  void AddQuad(const Vec3 (&corners)[4], SDL_Color colour, bool on_screen_texture);
  void Flush(SDL_Texture* texture);

  SDL_Renderer* renderer_;
  Camera camera_;
  Backdrop backdrop_;
  TexturePtr ball_;
  // Reused from frame to frame.
  std::vector<Seen> seen_;
  std::vector<SDL_Vertex> vertices_;
  std::vector<SDL_FPoint> sparks_;
};

}  // namespace game
