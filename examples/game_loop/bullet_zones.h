// Bullet reports its own profile zones to two hooks. Here they become zones of a FrameCounter; Bullet stays as it is.
#pragma once

#include <perfkit/frame_counter.h>

namespace game {

// Installs the hooks for as long as it lives. One at a time: Bullet's hooks carry no user data.
class BulletZones {
 public:
  explicit BulletZones(perfkit::FrameCounter& frames);
  ~BulletZones();
  BulletZones(const BulletZones&) = delete;
  BulletZones& operator=(const BulletZones&) = delete;
};

}  // namespace game
