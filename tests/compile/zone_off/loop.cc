// A game loop with zones: compiled with zones, with zones compiled out, and with no macro at all. The last two have to
// be the same code, byte for byte.
#ifdef WITHOUT_MACROS
#define PERFKIT_ZONE(frames, name)
namespace perfkit {
class FrameCounter;
}
#else
#include "perfkit/frame_counter.h"
#endif

void Step();
void Draw(int frame);

// Extern "C": symbol tables of the three stay alike.
extern "C" int Loop(perfkit::FrameCounter& frames, int count) {
  int drawn = 0;
  for (int frame = 0; frame < count; ++frame) {
    {
      PERFKIT_ZONE(frames, "physics");
      Step();
    }
    PERFKIT_ZONE(frames, "draw");
    if (frame % 2 == 0) {
      PERFKIT_ZONE(frames, "even");
      Draw(frame);
      ++drawn;
    }
  }
  static_cast<void>(frames);
  return drawn;
}
