// Bullet's zone names are literals, which is what a ZoneId wants: entering a zone costs no look-up by text.
#include "bullet_zones.h"

#include <LinearMath/btQuickprof.h>

namespace game {
namespace {

perfkit::FrameCounter* hooked = nullptr;
btEnterProfileZoneFunc* previous_enter = nullptr;
btLeaveProfileZoneFunc* previous_leave = nullptr;

void Enter(const char* name) { hooked->Enter(perfkit::ZoneId{name}); }
void Leave() { hooked->Leave(); }

}  // namespace

BulletZones::BulletZones(perfkit::FrameCounter& frames) {
  hooked = &frames;
  previous_enter = btGetCurrentEnterProfileZoneFunc();
  previous_leave = btGetCurrentLeaveProfileZoneFunc();
  btSetCustomEnterProfileZoneFunc(Enter);
  btSetCustomLeaveProfileZoneFunc(Leave);
}

BulletZones::~BulletZones() {
  btSetCustomEnterProfileZoneFunc(previous_enter);
  btSetCustomLeaveProfileZoneFunc(previous_leave);
  hooked = nullptr;
}

}  // namespace game
