// The physics: walls of bricks and the balls that are thrown at them. Bullet does the work.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "vec.h"

namespace game {

// One rigid body, as the renderer wants it.
struct Body {
  Vec3 center;
  Vec3 half_axes[3];  // of a box, in the world
  float radius = 0;   // a ball when not 0
  uint8_t rgb[3] = {};
};

// Not thread-safe, as Debian's Bullet is not: for the main thread. The same steps give the same bodies every time.
class Scene {
 public:
  Scene();
  ~Scene();
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  // A pyramid beyond the wall: what the level chunk contains.
  void AddPyramid();
  // A heavy ball from the camera's side. `seed` decides where it goes.
  void ThrowBall(uint64_t seed);
  // 1/60 s.
  void Step();

  // As of the last Step.
  std::span<const Body> bodies() const { return bodies_; }

 private:
  struct World;  // Bullet's
  std::unique_ptr<World> world_;
  std::vector<Body> bodies_;
};

}  // namespace game
