// Nothing here knows of perfkit: workers.h attaches the workers' counters from outside.
#include "particles.h"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <cmath>

namespace game {
namespace {

constexpr float kStepSeconds = 1.0f / 60;
constexpr float kLifeSeconds = 4.5f;
constexpr size_t kGrain = 1024;

// Springs at both ends of the wall.
Particle Born(unsigned long long seed) {
  const float angle = 6.2831853f * Random01(seed);
  const float spread = 1.5f * std::sqrt(Random01(seed + 1));
  const float side = Random01(seed + 2) < 0.5f ? -1.0f : 1.0f;
  return {
      .position = {side * 9.5f, 0.1f, 1.0f},
      .velocity = {spread * std::cos(angle) - side * 0.6f, 8.0f + 2.5f * Random01(seed + 3), spread * std::sin(angle)},
      .life = 1};
}

// A wind that turns with height and time: cheap, smooth, and the same for all who ask.
Vec3 Wind(Vec3 at, float time) {
  return {std::sin(0.7f * at.y + time) + 0.5f * std::sin(1.3f * at.z), 0.4f * std::sin(0.9f * at.x + 0.5f * time),
          std::cos(0.6f * at.y - time) + 0.5f * std::cos(1.1f * at.x)};
}

void Move(Particle& particle, float time) {
  const Vec3 wind = Wind(particle.position, time);
  particle.velocity = (particle.velocity + (wind * 1.4f + Vec3{0, -6.5f, 0}) * kStepSeconds) * 0.997f;
  particle.position = particle.position + particle.velocity * kStepSeconds;
  if (particle.position.y < 0.03f) {
    particle.position.y = 0.03f;
    particle.velocity = {particle.velocity.x * 0.8f, std::fabs(particle.velocity.y) * 0.6f, particle.velocity.z * 0.8f};
  }
  particle.life -= kStepSeconds / kLifeSeconds;
}

}  // namespace

Particles::Particles(size_t count) : particles_(count) {
  // Ages are spread over a whole life, so that the springs run evenly from the first step on.
  for (size_t i = 0; i < count; ++i) {
    particles_[i] = Born(i * 4);
    const int steps = static_cast<int>(Random01(i + 99) * kLifeSeconds / kStepSeconds);
    for (int s = 0; s < steps; ++s) Move(particles_[i], 0);
  }
}

void Particles::Update() {
  ++step_;
  const float time = static_cast<float>(step_) * kStepSeconds;
  tbb::parallel_for(tbb::blocked_range<size_t>(0, particles_.size(), kGrain), [&](const auto& range) {
    for (size_t i = range.begin(); i != range.end(); ++i) {
      Move(particles_[i], time);
      if (particles_[i].life <= 0) particles_[i] = Born((step_ * particles_.size() + i) * 4);
    }
  });
}

}  // namespace game
