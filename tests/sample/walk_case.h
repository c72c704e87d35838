// One case of the random walk over samplers: the options, and the actions. Made from a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/sampler.h"

namespace perfkit::walk {

enum class Step : uint8_t {
  kTouch,
  kTouchElsewhere,  // another thread
  kTouchNew,        // a thread that is born for it
  kStart,
  kStop,
  kPause,
  kResume,
  kRate,
  kDrain,
  kDrainSome,
  kDrainThrow,
  kForeign,  // opens another sampler of the same event, or closes it
  kFork,
  kAccounting,
  kSnapshot,    // of rings that overwrite
  kStackBytes,  // of samples with dumps
  kSuccessor,   // the other thread ends, and one more is born
  kSteps,
};
inline constexpr const char* kNames[] = {"touch",
                                         "touch elsewhere",
                                         "touch by a new thread",
                                         "start",
                                         "stop",
                                         "pause",
                                         "resume",
                                         "rate",
                                         "drain",
                                         "drain some",
                                         "throw",
                                         "foreign",
                                         "fork",
                                         "check accounting",
                                         "snapshot",
                                         "stack bytes",
                                         "successor"};

struct Move {
  Step step = Step::kTouch;
  size_t number = 0;  // pages, a period, records
};

struct Walk {
  bool all_threads = false;
  bool side_band = false;
  bool switches = false;
  bool two_events = false;
  bool overwrites = false;
  bool dumps = false;
  size_t ring_bytes = 0;
  SamplerOptions::Rings rings = SamplerOptions::Rings::kPerCpu;
  std::vector<Move> moves;

  std::string Describe() const {
    std::string text =
        absl::StrFormat("%s, rings of %d bytes%s%s%s%s%s%s:", all_threads ? "all threads" : "this thread", ring_bytes,
                        rings == SamplerOptions::Rings::kPerCpu ? "" : ", one a thread", side_band ? ", side band" : "",
                        switches ? ", switches" : "", two_events ? ", two events" : "",
                        overwrites ? ", overwriting" : "", dumps ? ", dumps" : "");
    for (const Move& move : moves) {
      absl::StrAppendFormat(&text, " %s %d;", kNames[static_cast<size_t>(move.step)], move.number);
    }
    return text;
  }
};

inline Walk MakeWalk(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto one_in = [&](unsigned n) { return random() % n == 0; };
  Walk walk;
  walk.all_threads = one_in(2);
  walk.side_band = one_in(3);
  walk.switches = one_in(4);
  walk.two_events = one_in(4);
  walk.overwrites = one_in(4);
  walk.dumps = one_in(5);
  walk.ring_bytes = one_in(3) ? 4096 : 256 << 10;
  if (one_in(4)) walk.rings = SamplerOptions::Rings::kPerThread;
  for (size_t i = 5 + random() % 40; i > 0; --i) {
    const auto step = static_cast<Step>(random() % static_cast<size_t>(Step::kSteps));
    size_t number = 1 + random() % 60;
    if (step == Step::kRate) number = one_in(2) ? 1 : 2 + random() % 20;
    walk.moves.push_back({step, number});
  }
  return walk;
}

}  // namespace perfkit::walk
