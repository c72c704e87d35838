// The loop of random walks: cases that are made from one number each, for a time; and the shrinking of one that fails.
//
// PERFKIT_WALK_SECONDS is how long each walk takes, the usual and the heavy form; PERFKIT_WALK_SEED walks one case
// only.
#pragma once

#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/with_tracefs.h"
#include "tests/support/work.h"

namespace perfkit::walk {

// How long a walk takes, in seconds: in each run of the suite, and under the label `heavy`. The shrinking of a
// case that fails begins no run after kShrinkSeconds.
inline constexpr uint64_t kUsualSeconds = 2, kHeavySeconds = 3600, kShrinkSeconds = 60;

inline std::optional<uint64_t> NumberFrom(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? std::nullopt : std::optional<uint64_t>(std::strtoull(text, nullptr, 10));
}

// Leaves out of a failing case whatever it fails without, too. Tries nothing more after kShrinkSeconds. `Run` takes a
// case and returns what is wrong with it; "": nothing.
template <class Case, class Run>
class Shrinker {
 public:
  Shrinker(Case failing, std::string wrong, Run& run)
      : case_(std::move(failing)), wrong_(std::move(wrong)), run_(run) {}

  // Keeps `change`, which makes the case simpler, if it still fails.
  template <class Change>
  void Try(Change&& change) {
    Case less = case_;
    change(less);
    if (Fails(less)) case_ = std::move(less);
  }
  // Removes all elements of a list that are not needed, but for the last `least`.
  template <class T>
  void TryWithout(std::vector<T> Case::*list, size_t least = 0) {
    for (size_t i = 0; i < (case_.*list).size() && (case_.*list).size() > least;) {
      Case less = case_;
      (less.*list).erase((less.*list).begin() + static_cast<ptrdiff_t>(i));
      if (Fails(less)) {
        case_ = std::move(less);
      } else {
        ++i;
      }
    }
  }
  const Case& least() const { return case_; }
  const std::string& wrong() const { return wrong_; }

 private:
  // What fails once in a few tries fails.
  bool Fails(const Case& less) {
    for (int tries = 0; tries < 5 && testing::NowNs() < end_ns_; ++tries) {
      const std::string wrong = run_(less);
      if (wrong.empty()) continue;
      wrong_ = wrong;
      return true;
    }
    return false;
  }

  Case case_;
  std::string wrong_;  // What was wrong with it.
  Run& run_;
  uint64_t end_ns_ = testing::NowNs() + kShrinkSeconds * uint64_t{1'000'000'000};
};

// Runs the cases make(seed) of consecutive seeds for `seconds`, unless the environment says something else. Of one that
// fails, returns its seed, and what shrink(Shrinker&) leaves of it; "" if none does. The cases have a method Describe.
template <class Make, class Run, class Shrink>
std::string FirstFailure(uint64_t seconds, const char* what, Make make, Run run, Shrink shrink) {
  const std::optional<uint64_t> only = NumberFrom("PERFKIT_WALK_SEED");
  const uint64_t end_ns =
      testing::NowNs() + NumberFrom("PERFKIT_WALK_SECONDS").value_or(seconds) * uint64_t{1'000'000'000};
  uint64_t walks = 0;
  for (uint64_t seed = only.value_or(std::random_device()()); walks == 0 || testing::NowNs() < end_ns; ++seed) {
    const auto first = make(seed);
    if (const std::string wrong = run(first); !wrong.empty()) {
      std::printf("%s: seed %lu fails, and is shrunk: %s\n", what, seed, wrong.c_str());
      std::fflush(stdout);
      Shrinker shrinker(first, wrong, run);
      shrink(shrinker);
      return "PERFKIT_WALK_SEED=" + std::to_string(seed) + ": " + wrong + "\n" + first.Describe() +
             "\nshrunk: " + shrinker.least().Describe() + "\n" + shrinker.wrong();
    }
    ++walks;
    if (only) break;
  }
  std::printf("%s: %lu walks\n", what, walks);
  std::fflush(stdout);
  return "";
}

// As above, and FAILs with what it returns.
template <class Make, class Run, class Shrink>
void WalkFor(uint64_t seconds, const char* what, Make make, Run run, Shrink shrink) {
  const std::string failure = FirstFailure(seconds, what, make, run, shrink);
  if (!failure.empty()) FAIL(failure);
  SUCCEED();
}

// As above, in a forked child that has tracepoints if it may mount tracefs.
template <class Make, class Run, class Shrink>
void WalkWithTracefsFor(uint64_t seconds, const char* what, Make make, Run run, Shrink shrink) {
  if (!testing::kThreadsAfterFork) return WalkFor(seconds, what, make, run, shrink);
  std::array<int, 2> lines{};
  REQUIRE(pipe(lines.data()) == 0);
  const auto walk = [&] {
    const std::string failure = FirstFailure(seconds, what, make, run, shrink);
    return write(lines[1], failure.data(), failure.size()) == static_cast<ssize_t>(failure.size());
  };
  int result = testing::WithTracefs(walk);
  if (result == 2) result = walk() ? 0 : 1;
  close(lines[1]);
  std::string failure(size_t{1} << 16, '\0');
  const ssize_t size = read(lines[0], failure.data(), failure.size());
  close(lines[0]);
  failure.resize(size > 0 ? static_cast<size_t>(size) : 0);
  if (!failure.empty()) FAIL(failure);
  CHECK(result == 0);
}

}  // namespace perfkit::walk
