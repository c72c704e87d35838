// Sessions, names, looks at threads and files of profiles under faults.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "perfkit/blocked_threads.h"
#include "perfkit/profile_builder.h"
#include "perfkit/profile_writer.h"
#include "perfkit/session.h"
#include "perfkit/symbolizer.h"
#include "tests/support/fault_table.h"
#include "tests/support/temp_folder.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

using testing::Faults;
using testing::RunFaults;

SessionOptions FaultSession(SessionClock clock, RingMode mode) {
  return {.events = {{.event = "page-faults", .rate = Period{1}}},
          .clock = clock,
          .stacks = SessionStacks::kFramePointers,
          .mode = mode,
          .memory_bytes = 1 << 18,
          .user_only = true,
          .own_thread = false,
          .lines = false};
}

// What a profile shows is what was delivered, and what was delivered is accounted for.
void CheckProfile(const Profile& profile) {
  REQUIRE(profile.Check() == absl::OkStatus());
  const EventAccounting& event = profile.events.at(0).accounting;
  INFO("counted " << event.counted << " delivered " << event.delivered << " lost " << event.lost);
  CHECK(profile.Total(0).samples == event.delivered);
}

absl::Status UseSession(Faults& faults, const SessionOptions& options, bool from_start) {
  if (from_start) faults.Begin();
  absl::StatusOr<Session> session = Session::Start(options);
  if (!session.ok()) return session.status();
  if (!from_start) faults.Begin();
  testing::FreshPages memory(16);
  memory.Touch(0, 8);
  absl::Status first = session->Poll();
  first.Update(session->Pause());
  first.Update(session->Resume());
  const absl::StatusOr<Profile> snapshot = session->Snapshot();
  first.Update(snapshot.status());
  if (snapshot.ok()) CheckProfile(*snapshot);
  memory.Touch(8, 8);
  const absl::StatusOr<Profile> profile = session->Stop();
  first.Update(profile.status());
  if (profile.ok()) CheckProfile(*profile);
  return first;
}

TEST_CASE("sessions from Start to Stop", "[faults]") {
  const auto use = [](const char* name, SessionClock clock, RingMode mode) {
    RunFaults(name, [&](Faults& faults) { return UseSession(faults, FaultSession(clock, mode), true); });
  };
  use("`Session`", SessionClock::kCpu, RingMode::kStream);
  use("`Session`: wall clock", SessionClock::kWall, RingMode::kStream);
  use("`Session`: flight recorder", SessionClock::kCpu, RingMode::kOverwrite);
}

TEST_CASE("controls of a running session", "[faults]") {
  RunFaults("`Session::Poll`, Pause, Snapshot, Stop", [](Faults& faults) {
    return UseSession(faults, FaultSession(SessionClock::kWall, RingMode::kStream), false);
  });
}

[[gnu::noinline]] void NamedByFaults() { asm volatile(""); }

TEST_CASE("names of this program", "[faults]") {
  RunFaults("`Symbolizer::AddProcess`, Resolve", [](Faults& faults) {
    faults.Begin();
    Symbolizer symbolizer({.debug_root = ""});
    const auto pid = static_cast<uint32_t>(getpid());
    if (absl::Status status = symbolizer.AddProcess(getpid()); !status.ok()) return status;
    const Symbol symbol = symbolizer.Resolve(pid, reinterpret_cast<uint64_t>(&NamedByFaults));
    if (!symbol.named()) return absl::NotFoundError("no name");
    CHECK(symbol.function.find("NamedByFaults") != std::string_view::npos);
    CHECK(symbol.offset == 0);
    return absl::OkStatus();
  });
}

TEST_CASE("a look at the threads", "[faults]") {
  RunFaults("`BlockedThreads`", [](Faults& faults) {
    faults.Begin();
    const auto threads = BlockedThreads({.names = false});
    if (!threads.ok()) return threads.status();
    for (const ThreadStatus& thread : *threads) {
      CHECK((thread.blocked || !thread.missing.empty()));
      if (thread.tid == static_cast<uint32_t>(gettid())) CHECK_FALSE(thread.blocked);  // it runs
    }
    return absl::OkStatus();
  });
}

std::string FileText(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST_CASE("a file of a profile is the old one, or the new one and OK", "[faults]") {
  const testing::TempFolder folder;
  const std::string path = folder.path() + "/work.txt", whole = folder.path() + "/whole.txt";
  auto session = Session::Start(FaultSession(SessionClock::kCpu, RingMode::kStream));
  REQUIRE(session.status() == absl::OkStatus());
  testing::FreshPages(100).Touch(0, 100);
  const auto profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  REQUIRE(WriteProfile(*profile, whole) == absl::OkStatus());
  RunFaults("`WriteProfile`", [&](Faults& faults) {
    folder.Write("/work.txt", "old");
    faults.Begin();
    const absl::Status written = WriteProfile(*profile, path);
    CHECK(FileText(path) == (written.ok() ? FileText(whole) : "old"));
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 2);
    return written;
  });
}

}  // namespace
}  // namespace perfkit
