// One case of the random walk over modules: the way to observe, and the actions. Made from a seed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "tests/support/made_elf.h"

namespace perfkit::walk {

// Processes that act, files that they use, and places for functions that are made at run time.
inline constexpr size_t kActors = 4, kLibraries = 3, kFiles = kLibraries + 1, kProgram = kLibraries, kSlots = 4;

enum class Step : uint8_t {
  kOpen,        // dlopen
  kClose,       // dlclose
  kCall,        // a function of a library, which touches a page
  kCallThread,  // the same, on a thread that is born for it
  kJit,         // makes a function, and lists it in /tmp/perf-PID.map
  kForeignJit,  // the same, but the list is another user's, and has another name (root only)
  kCallJit,     // calls what was made
  kRebuild,     // another build takes the file's name
  kRewrite,     // another build takes the file itself, if no process has it mapped
  kBack,        // an earlier build takes the file's name
  kDelete,      // the file
  kRename,      // to the name of the next library
  kFork,        // one more process
  kEnd,         // of a process, and of those that it has made
  kExec,        // forks a child that runs the program
  kContainer,   // forks a process that has other files at the same paths
  kDrain,
  kName,  // what was sampled so far
  kAddProcess,
  kStop,
  kStart,
  kPause,
  kResume,
  kAge,  // until files that were changed before are older than the clock of files can tell
  kSteps,
};
inline constexpr const char* kStepNames[] = {"open",    "close",       "call",        "call by a thread",
                                             "jit",     "foreign jit", "call jit",    "rebuild",
                                             "rewrite", "back",        "delete",      "rename",
                                             "fork",    "end",         "exec",        "container",
                                             "drain",   "name",        "add process", "stop",
                                             "start",   "pause",       "resume",      "age"};

struct Move {
  Step step = Step::kCall;
  size_t actor = 0, file = 0, number = 0;
};

struct Walk {
  bool own = false;    // A process observes itself: its threads, not its children.
  bool late = false;   // Names are looked up by kName and at the end only, else with each sample, too.
  bool tmpfs = false;  // The files are on a file system of their own (root only).
  std::vector<Move> moves;

  std::string Describe() const {
    std::string text = absl::StrFormat("%s%s%s:", own ? "observes itself" : "observes another process",
                                       late ? ", late names" : "", tmpfs ? ", on tmpfs" : "");
    for (const Move& move : moves) {
      absl::StrAppendFormat(&text, " %s %d/%d/%d;", kStepNames[static_cast<size_t>(move.step)], move.actor, move.file,
                            move.number);
    }
    return text;
  }
};

// A library is replaced under the process that uses it, as those who develop it do.
inline void AddReload(Walk& walk, std::mt19937_64& random) {
  constexpr Step kReplace[] = {Step::kRebuild, Step::kRewrite, Step::kBack, Step::kDelete, Step::kRename};
  const size_t file = random() % kLibraries;
  for (const Step step : {Step::kAge, Step::kOpen, Step::kCall, Step::kDrain, Step::kClose, kReplace[random() % 5],
                          Step::kAge, Step::kOpen, Step::kCall}) {
    if (random() % 4 != 0) walk.moves.push_back({step, 0, file, random() % 16});
  }
}

inline Walk MakeWalk(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto one_in = [&](unsigned n) { return random() % n == 0; };
  Walk walk;
  walk.own = one_in(3);
  walk.late = one_in(2);
  walk.tmpfs = one_in(2);
  for (size_t i = 5 + random() % 80; i > 0; --i) {
    // Half of all moves use code: a walk of all kinds alike would rarely sample what it has done.
    auto step = static_cast<Step>(random() % static_cast<size_t>(Step::kSteps));
    if (one_in(2)) step = one_in(3) ? Step::kOpen : one_in(4) ? Step::kCallJit : Step::kCall;
    if (one_in(16)) step = Step::kDrain;
    walk.moves.push_back({step, one_in(2) ? 0 : random() % kActors, random() % kFiles, random() % 16});
    if (one_in(12)) AddReload(walk, random);
  }
  return walk;
}

// A build of a library or of the program. Functions of two builds lie at the same places, and have other names.
inline testing::MadeElf BuildOf(size_t number) {
  std::mt19937_64 random(number);
  testing::MadeElf made;
  for (size_t k = 0; k < 2 + random() % 5; ++k)
    made.functions.push_back(absl::StrFormat("build%d_function%d", number, k));
  made.lead = testing::made::kFunctionBytes * (random() % 4);
  if (random() % 2 == 0) return made;  // Without a build-id.
  for (int i = 0; i < 20; ++i) made.build_id += static_cast<char>(random());
  return made;
}

inline constexpr const char* kForeignName = "a function of another user";
inline std::string JitName(size_t number) { return absl::StrFormat("jit%d", number); }

inline std::string FileName(std::string_view folder, size_t file) {
  return absl::StrFormat("%s/%s%d.so", std::string(folder), file == kProgram ? "program" : "library", file);
}

}  // namespace perfkit::walk
