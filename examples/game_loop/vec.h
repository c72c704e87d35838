// Three numbers, and what a game does with them. The engines have their own; this is what they hand to each other.
#pragma once

#include <cmath>

namespace game {

struct Vec3 {
  float x = 0, y = 0, z = 0;

  friend constexpr Vec3 operator+(Vec3 a, Vec3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
  friend constexpr Vec3 operator-(Vec3 a, Vec3 b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
  friend constexpr Vec3 operator*(Vec3 a, float s) { return {a.x * s, a.y * s, a.z * s}; }
};

constexpr float Dot(Vec3 a, Vec3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
constexpr Vec3 Cross(Vec3 a, Vec3 b) { return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x}; }
inline Vec3 Normalized(Vec3 a) { return a * (1 / std::sqrt(Dot(a, a))); }

// A number in [0, 1) that depends on `seed` alone: the same game on every machine. The finaliser of SplitMix64
// (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
inline float Random01(unsigned long long seed) {
  seed += 0x9e3779b97f4a7c15;
  seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9;
  seed = (seed ^ (seed >> 27)) * 0x94d049bb133111eb;
  return static_cast<float>((seed ^ (seed >> 31)) >> 40) * 0x1p-24f;
}

}  // namespace game
