// A fixed pinhole camera: world to pixels for what moves, pixels to rays for the backdrop that is drawn once.
#pragma once

#include "vec.h"

namespace game {

struct Pixel {
  float x, y;
  float depth;  // along the view axis; not in front of the camera when <= near
};

class Camera {
 public:
  static constexpr float kNear = 0.2f;

  // `center_x`, `center_y`: the pixel that `target` is seen at. `focal`: pixels a unit of x/z.
  Camera(Vec3 eye, Vec3 target, float center_x, float center_y, float focal)
      : eye_(eye), center_x_(center_x), center_y_(center_y), focal_(focal) {
    forward_ = Normalized(target - eye);
    right_ = Normalized(Cross(forward_, {0, 1, 0}));
    up_ = Cross(right_, forward_);
  }

  Pixel Project(Vec3 point) const {
    const Vec3 offset = point - eye_;
    const float depth = Dot(offset, forward_);
    const float scale = focal_ / (depth > kNear ? depth : kNear);
    return {center_x_ + Dot(offset, right_) * scale, center_y_ - Dot(offset, up_) * scale, depth};
  }
  Vec3 RayThrough(float x, float y) const {
    return Normalized(forward_ + right_ * ((x - center_x_) / focal_) + up_ * ((center_y_ - y) / focal_));
  }
  float PixelsAt(float depth) const { return focal_ / (depth > kNear ? depth : kNear); }
  Vec3 eye() const { return eye_; }

 private:
  Vec3 eye_, forward_, right_, up_;
  float center_x_, center_y_, focal_;
};

}  // namespace game
