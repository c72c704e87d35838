// One case of the random walk over samplers: the options, and the actions. Made from a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
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
  kForeign,     // opens another sampler of the same event, or closes it
  kForeignRaw,  // opens an event that is not perfkit's, with other fields and another clock, or closes it
  kFork,
  kAccounting,
  kSnapshot,    // of rings that overwrite
  kStackBytes,  // of samples with dumps
  kSuccessor,   // the other thread ends, and one more is born
  kSwitchAway,
  kGetppid,
  kSpin,
  kFewFiles,     // so few descriptors are left
  kEnoughFiles,  // as many as before
  kInterrupt,    // A read of a count that comes is interrupted.
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
                                         "not perfkit's",
                                         "fork",
                                         "check accounting",
                                         "snapshot",
                                         "stack bytes",
                                         "successor",
                                         "switch away",
                                         "getppid",
                                         "spin",
                                         "few descriptors",
                                         "enough descriptors",
                                         "interrupt"};

// An event beside the page faults.
struct Extra {
  const char* event;
  uint64_t period;
  bool clock = false;
};
// Those of the kernel's side take rights.
inline constexpr Extra kExtras[] = {{"task-clock", 300'000, true},       {"cpu-clock", 200'000, true},
                                    {"context-switches", 1},             {"context-switches", 3},
                                    {"syscalls:sys_enter_getppid", 1},   {"sched:sched_switch", 1},
                                    {"syscalls:sys_enter_getppid", 7},   {"cpu-migrations", 1}};
inline constexpr size_t kNoExtra = std::size(kExtras);

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
  bool budget = false;  // A CPU budget that is exceeded.
  size_t extra = kNoExtra;
  bool signals = false;     // come every now and then
  bool check_each = false;  // The accounting is checked after each step.
  size_t ring_bytes = 0;
  SamplerOptions::Rings rings = SamplerOptions::Rings::kPerCpu;
  std::vector<Move> moves;

  std::string Describe() const {
    std::string text =
        absl::StrFormat("%s, rings of %d bytes%s%s%s%s%s%s%s%s%s%s%s:", all_threads ? "all threads" : "this thread", ring_bytes,
                        rings == SamplerOptions::Rings::kPerCpu ? "" : ", one a thread", side_band ? ", side band" : "",
                        switches ? ", switches" : "", two_events ? ", two events" : "",
                        overwrites ? ", overwriting" : "", dumps ? ", dumps" : "", budget ? ", budget" : "", extra == kNoExtra ? "" : ", ",
                        extra == kNoExtra ? "" : kExtras[extra].event, signals ? ", signals" : "",
                        check_each ? ", checked at each step" : "");
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
  if (one_in(2)) walk.extra = random() % kNoExtra;
  walk.signals = one_in(4);
  walk.check_each = one_in(2);
  walk.ring_bytes = one_in(3) ? 4096 : 256 << 10;
  if (one_in(4)) walk.rings = SamplerOptions::Rings::kPerThread;
  walk.budget = !walk.overwrites && one_in(6);
  for (size_t i = 5 + random() % 40; i > 0; --i) {
    const auto step = static_cast<Step>(random() % static_cast<size_t>(Step::kSteps));
    size_t number = 1 + random() % 60;
    if (step == Step::kRate) number = one_in(2) ? 1 : 2 + random() % 20;
    walk.moves.push_back({step, number});
  }
  return walk;
}

}  // namespace perfkit::walk
