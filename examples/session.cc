// A profile in five lines: start, work, stop, look.
#include "perfkit/session.h"

#include <cmath>
#include <cstdio>

#include "perfkit/profile_writer.h"
#include "perfkit/report.h"

using namespace std::chrono_literals;

namespace {

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

double Work() { return Simulate(6'000'000) + Render(20'000'000); }

}  // namespace

int main(int argc, char** argv) {
  auto session = perfkit::Session::Start({.interval = 1ms});
  if (!session.ok()) return fprintf(stderr, "%s\n", session.status().ToString().c_str()), 1;
  const double result = Work();
  auto profile = session->Stop();
  if (!profile.ok()) return fprintf(stderr, "%s\n", profile.status().ToString().c_str()), 1;

  fputs(perfkit::FormatReport(*profile, {.min_percent = 5}).c_str(), stdout);
  const absl::Status written = argc > 1 ? perfkit::WriteProfile(*profile, argv[1]) : absl::OkStatus();
  if (!written.ok()) fprintf(stderr, "%s\n", written.ToString().c_str());
  return written.ok() && result > 0 ? 0 : 1;
}
