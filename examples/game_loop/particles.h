// The particles: sparks that fly up in a spring, drift and bounce. TBB updates them on all its workers.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "vec.h"

namespace game {

struct Particle {
  Vec3 position, velocity;
  float life = 0;  // 1 when born, dead at 0
};

// Each particle's path depends on its own past and nothing else, so any split over threads gives the same picture.
class Particles {
 public:
  explicit Particles(size_t count);

  // 1/60 s, in parallel on the calling thread and the workers of its arena.
  void Update();

  std::span<const Particle> all() const { return particles_; }

 private:
  std::vector<Particle> particles_;
  unsigned long long step_ = 0;
};

}  // namespace game
