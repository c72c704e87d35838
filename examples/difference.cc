// Compares two runs: which functions take more time than before, and which changes may be noise.
//
//   difference [FILE]      FILE: the difference as a page (.html) or as text (.txt)
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "perfkit/profile_difference.h"
#include "perfkit/profile_writer.h"
#include "perfkit/session.h"

using namespace std::chrono_literals;

namespace {

constexpr int kTurns = 40;

double Simulate(int steps) {
  double energy = 0;
  for (int i = 1; i <= steps; ++i) energy += std::sin(i) / i;
  return energy;
}

double Render(int pixels) {
  double light = 0;
  for (int i = 1; i <= pixels; ++i) light += std::sqrt(i);
  return light;
}

perfkit::Profile Run(int steps) {
  auto session = perfkit::Session::Start({.interval = 1ms});
  volatile int given_steps = steps, given_pixels = 8'000'000;  // volatile: each turn is computed anew
  volatile double result = 0;
  for (int i = 0; i < kTurns; ++i) result = result + Simulate(given_steps) + Render(given_pixels);
  return session.ok() ? session->Stop().value_or(perfkit::Profile()) : perfkit::Profile();
}

}  // namespace

int main(int argc, char** argv) {
  const perfkit::Profile before = Run(1'000'000), after = Run(1'300'000);
  const auto difference = perfkit::Difference(before, after, {.before_iterations = kTurns, .after_iterations = kTurns});
  if (!difference.ok()) return fprintf(stderr, "%s\n", difference.status().ToString().c_str()), 1;
  fputs(perfkit::FormatReport(*difference, {.max_lines = 8, .children = true}).c_str(), stdout);
  if (argc < 2) return 0;
  const absl::Status written = perfkit::WriteDifference(*difference, argv[1]);
  if (!written.ok()) return fprintf(stderr, "%s\n", written.ToString().c_str()), 1;
}
