// stacks: samples SQLite while it runs queries, with live stacks and with dumped ones by turns, and prints the live
// ones as a tree with inlined calls and lines, and what both came to.
//
//   stacks [SECONDS] [BYTES]      how long; how much of the stack each dump copies (32,768)
#include <absl/strings/str_format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "profile.h"
#include "workload/queries.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kMinPercent = 2;
constexpr std::chrono::milliseconds kTurn{100};

int Fail(const std::string& why) {
  std::fprintf(stderr, "stacks: %s\n", why.c_str());
  return 1;
}

// One way after the other has its turn, until the time is over.
absl::Status SampleByTurns(stacks::Profile& live, stacks::Profile& dumped, double seconds) {
  const bool watched = isatty(STDERR_FILENO) == 1;
  const Clock::time_point end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  for (int turn = 0; Clock::now() < end; ++turn) {
    stacks::Profile& profile = turn % 2 == 0 ? live : dumped;
    if (absl::Status status = profile.Sample(kTurn); !status.ok()) return status;
    if (!watched) continue;
    std::fprintf(stderr, "\r%llu live, %llu dumped ", static_cast<unsigned long long>(live.outcome().stacks),
                 static_cast<unsigned long long>(dumped.outcome().stacks));
  }
  if (watched) std::fprintf(stderr, "\r\033[K");
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 4;
  const auto bytes = static_cast<uint32_t>(argc > 2 ? std::atoi(argv[2]) : 32 << 10);
  auto live = stacks::Profile::Open(perfkit::CallStack::Live(perfkit::LiveStacks));
  if (!live.ok()) return Fail(std::string(live.status().message()));
  auto dumped = stacks::Profile::Open(perfkit::CallStack::UserDump(bytes));
  if (!dumped.ok()) return Fail(std::string(dumped.status().message()));

  std::atomic<bool> stop{false};
  std::atomic<uint64_t> queries{0};
  std::string wrong;
  std::thread worker([&] { wrong = workload::RunQueries(stop, queries); });
  const absl::Status status = SampleByTurns(**live, **dumped, seconds);
  stop = true;
  worker.join();
  if (!status.ok()) return Fail(std::string(status.message()));
  if (!wrong.empty()) return Fail(wrong);
  if ((*live)->outcome().stacks == 0 || (*dumped)->outcome().stacks == 0) return Fail("no sample came");

  absl::PrintF("%d queries\n\n", queries.load());
  (*live)->PrintTree(kMinPercent);
  (*live)->PrintOutcome("live");
  (*dumped)->PrintOutcome(absl::StrFormat("dumped, %d bytes", bytes));
  return 0;
}
