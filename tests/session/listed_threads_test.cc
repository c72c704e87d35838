// Sessions of listed threads only.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "src/session/drop_threads.h"
#include "src/session/thread_table.h"
#include "tests/session/support.h"

namespace perfkit::session {
namespace {

// A thread that faults in pages when it is told to, and tells its tid.
class Faulter {
 public:
  explicit Faulter(const char* name)
      : thread_([this, name] {
          pthread_setname_np(pthread_self(), name);
          tid_ = static_cast<pid_t>(syscall(SYS_gettid));
          tid_.notify_all();
          goes_.wait(false);
          Fault(100);
        }) {
    tid_.wait(0);
  }
  ~Faulter() { Finish(); }
  Faulter(const Faulter&) = delete;
  Faulter& operator=(const Faulter&) = delete;

  pid_t tid() const { return tid_; }
  void Finish() {
    goes_ = true;
    goes_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::atomic<pid_t> tid_{0};
  std::atomic<bool> goes_{false};
  std::thread thread_;
};

SessionOptions FaultsOf(std::vector<pid_t> threads) {
  return {.events = ClockAndFaults(), .stacks = SessionStacks::kNone, .threads = std::move(threads)};
}

bool NotesSay(const Profile& profile, std::string_view words) {
  return std::ranges::any_of(profile.accounting.notes,
                             [&](const std::string& note) { return note.find(words) != note.npos; });
}

TEST_CASE("only listed threads are in the profile, also those that have ended", "[session][listed_threads]") {
  Faulter first("first"), second("second"), third("third");
  const SessionClock clock = GENERATE(SessionClock::kCpu, SessionClock::kWall);
  SessionOptions options = FaultsOf({first.tid(), third.tid(), first.tid()});
  options.clock = clock;
  absl::StatusOr<Session> session = Session::Start(options);
  REQUIRE(session.status() == absl::OkStatus());
  Fault(100);
  first.Finish();
  second.Finish();
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CHECK(profile->Check() == absl::OkStatus());
  std::vector<pid_t> tids;
  uint64_t faults = 0;
  for (const ProfileThread& thread : profile->threads) tids.push_back(static_cast<pid_t>(thread.tid));
  for (const ProfileSample& sample : profile->samples) {
    if (sample.event == 1) faults += sample.weight;
  }
  std::ranges::sort(tids);
  CHECK(tids == std::vector<pid_t>{std::min(first.tid(), third.tid()), std::max(first.tid(), third.tid())});
  CHECK(faults >= 100);
  CHECK(faults + 200 <= profile->events[1].accounting.delivered);
  CHECK(NotesSay(*profile, "of the 2 in SessionOptions::threads"));
  if (clock == SessionClock::kCpu) return;
  for (const ProfileThread& thread : profile->threads) CHECK(thread.on_ns + thread.off_ns > 0);
}

TEST_CASE("threads are listed by tid and name at once", "[session][listed_threads]") {
  Faulter first("first"), second("second");
  SessionOptions options = FaultsOf({first.tid(), second.tid()});
  options.thread_name = "sec*";
  absl::StatusOr<Session> session = Session::Start(options);
  REQUIRE(session.status() == absl::OkStatus());
  first.Finish();
  second.Finish();
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  REQUIRE(profile->threads.size() == 1);
  CHECK(profile->ThreadName(0) == "second");
}

TEST_CASE("a listed thread that does not exist is an error with its tid", "[session][listed_threads]") {
  pid_t ended = 0;
  {
    const Faulter faulter("ended");
    ended = faulter.tid();
  }
  // A thread that was joined is still listed for a moment.
  absl::Status status;
  while ((status = Session::Start(FaultsOf({getpid(), ended})).status()).ok()) std::this_thread::yield();
  CHECK(status.code() == absl::StatusCode::kNotFound);
  CHECK(status.message().find(std::to_string(ended)) != std::string_view::npos);
  CHECK(status.message().find("SessionOptions::threads") != std::string_view::npos);
  for (const pid_t tid : {0, -1, 1}) {
    if (tid != getpid()) CHECK(Session::Start(FaultsOf({tid})).status().code() == absl::StatusCode::kNotFound);
  }
}

TEST_CASE("a later thread with a listed tid is another one, and listed ones are never summed up", "[listed_threads]") {
  ProfileBuilder builder;
  ThreadTable table(builder);
  table.List(1, 7, "listed", 10);
  table.Forked(1, 7, 1, 20);  // its own record, from the start
  CHECK(table.IndexOf(1, 7, 30) == table.listed()[0]);
  table.Exited(1, 7, 40);
  table.Forked(1, 7, 1, 50);
  table.Renamed(1, 7, "listed", 51);
  CHECK(table.IndexOf(1, 7, 60) != table.listed()[0]);
  for (uint32_t i = 0; i < 2 * ThreadTable::kMaxEnded; ++i) {
    table.Forked(1, 1000 + i, 1, 100 + i);
    table.Exited(1, 1000 + i, 100 + i);
    const std::vector<uint32_t> renamed = table.Retire();
    if (!renamed.empty()) CHECK(renamed[table.listed()[0]] == table.listed()[0]);
  }
  REQUIRE(table.retired() != 0);
  Profile profile = builder.profile();
  KeepThreads(profile, {.unused = table.unused(), .listed = table.listed()});
  REQUIRE(profile.threads.size() == 1);
  CHECK(profile.threads[0].tid == 7);
  CHECK(profile.threads[0].first_ns == 10);
  // Each thread of a sum counts, and the later one with tid 7.
  CHECK(NotesSay(profile, "0 samples of " + std::to_string(2 * ThreadTable::kMaxEnded + 1) + " other threads"));
}

}  // namespace
}  // namespace perfkit::session
