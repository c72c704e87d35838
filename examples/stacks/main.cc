// stacks: profiles SQLite while it runs queries, first with live stacks, then with dumped ones, and prints both
// profiles: the live one with its call tree, inlined calls and source lines.
//
//   stacks [SECONDS]      how long (4)
#include <absl/strings/str_format.h>
#include <perfkit/report.h>
#include <perfkit/session.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "tool/arguments.h"
#include "tool/output.h"
#include "workload/queries.h"

namespace {

using namespace std::chrono_literals;

constexpr tool::Usage kUsage = {"stacks", "usage: stacks [SECONDS]\n  profiles SQLite for SECONDS (4)\n", 1};

int Fail(const std::string& why) {
  std::fprintf(stderr, "stacks: %s\n", why.c_str());
  return 1;
}

// Profiles all threads for this time, with this kind of stacks or not at all. Drives the session itself: then Start
// builds all unwind tables, and the first stacks are whole, too.
absl::StatusOr<perfkit::Profile> ProfileFor(std::chrono::duration<double> time, perfkit::SessionStacks stacks) {
  absl::StatusOr<perfkit::Session> session =
      perfkit::Session::Start({.interval = 2ms, .stacks = stacks, .user_only = true, .own_thread = false});
  if (!session.ok()) return session.status();
  for (const auto end = std::chrono::steady_clock::now() + time; std::chrono::steady_clock::now() < end;) {
    std::this_thread::sleep_for(20ms);
    if (absl::Status status = session->Poll(); !status.ok()) return status;
  }
  return session->Stop();
}

}  // namespace

int main(int argc, char** argv) {
  tool::ReserveStandardStreams();
  const std::chrono::duration<double> half(tool::SecondsArgument(kUsage, argc, argv, 4) / 2);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> queries{0};
  std::string wrong;
  std::thread worker([&] { wrong = workload::RunQueries(stop, queries); });
  const absl::StatusOr<perfkit::Profile> live = ProfileFor(half, perfkit::SessionStacks::kLive);
  const absl::StatusOr<perfkit::Profile> dumped = ProfileFor(half, perfkit::SessionStacks::kDumps);
  stop = true;
  worker.join();
  if (!wrong.empty()) return Fail(wrong);
  if (!live.ok()) return Fail(std::string(live.status().message()));
  if (!dumped.ok()) return Fail(std::string(dumped.status().message()));
  const std::string live_report = perfkit::FormatReport(*live, {.min_percent = 2}),
                    dumped_report = perfkit::FormatReport(*dumped, {.min_percent = 2, .call_tree = false});
  const std::string text =
      absl::StrFormat("%d queries\n\nlive stacks\n%s\ndumped stacks\n%s", queries.load(), live_report, dumped_report);
  return tool::PrintText("stacks", text) ? 0 : 1;
}
