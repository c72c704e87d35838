// What holds of any session's profile, whatever the machine does.
#include <poll.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>

#include "src/proc/threads.h"
#include "tests/session/support.h"
#include "tests/support/as_user.h"
#include "tests/support/run.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit::session {
namespace {

using namespace std::chrono_literals;

TEST_CASE("samples add up to what was delivered, with threads that come and go", "[session][law]") {
  const auto stacks = GENERATE(SessionStacks::kNone, SessionStacks::kFramePointers, SessionStacks::kBest);
  absl::StatusOr<Session> session = Session::Start({.events = ClockAndFaults(), .stacks = stacks});
  REQUIRE(session.status() == absl::OkStatus());
  std::vector<Profile::Sum> before(2);
  for (int i = 0; i < 5; ++i) {
    Churn(5);
    const absl::StatusOr<Profile> snapshot = session->Snapshot();
    REQUIRE(snapshot.status() == absl::OkStatus());
    CHECK(snapshot->Check() == absl::OkStatus());
    for (size_t event = 0; event < before.size(); ++event) {
      const Profile::Sum now = snapshot->Total(event);
      CHECK(now.samples >= before[event].samples);
      CHECK(now.weight >= before[event].weight);
      CHECK(now.samples == snapshot->events[event].accounting.delivered);
      before[event] = now;
    }
  }
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CheckLaws(*profile);
  CHECK(profile->Total(1).samples >= before[1].samples);
  CHECK(profile->Total(1).samples > 0);
}

TEST_CASE("the modules of a profile have the build-ids that readelf prints", "[session][law]") {
  absl::StatusOr<Session> session = Session::Start({.events = ClockAndFaults()});
  REQUIRE(session.status() == absl::OkStatus());
  Churn(3);
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  size_t files = 0;
  for (const ProfileModule& module : profile->modules) {
    const std::string& path = profile->strings[module.path];
    const std::string& build_id = profile->strings[module.build_id];
    INFO(path << " " << build_id);
    if (!path.starts_with('/') || path.starts_with("//")) continue;
    const testing::Run readelf = testing::RunCommand("LC_ALL=C readelf -nW '" + path + "'");
    if (readelf.exit_code != 0) SKIP_TEST("readelf is not installed");
    const bool has_one = readelf.output.find("Build ID: ") != std::string::npos;
    CHECK(build_id.empty() != has_one);
    CHECK((!has_one || readelf.output.find("Build ID: " + build_id + "\n") != std::string::npos));
    ++files;
  }
  CHECK(files > 0);
}

// What a program would write down: only what batches say.
struct Streamed {
  std::vector<Profile::Sum> sums = std::vector<Profile::Sum>(3);
  size_t batches = 0, wrong = 0, unresolved = 0;

  void Take(const SessionBatch& batch) {
    ++batches;
    for (const ProfileSample& sample : batch.samples) {
      sums[sample.event].weight += sample.weight;
      sums[sample.event].samples += sample.samples;
      wrong += sample.merged() || sample.thread >= batch.profile.threads.size();
      if (sample.wait != ProfileSample::kNoWait) wrong += sample.wait >= batch.profile.waits.size();
      for (uint32_t stack = sample.stack; stack != ProfileStack::kRoot; stack = batch.profile.stacks[stack].parent) {
        const ProfileLocation& location = batch.profile.locations[batch.profile.stacks[stack].location];
        const bool is_known = location.module < batch.profile.modules.size();
        unresolved += !is_known && location.module != ProfileLocation::kNoModule;
      }
    }
  }
};

TEST_CASE("batches add up to the profile", "[session][law]") {
  const auto clock = GENERATE(SessionClock::kCpu, SessionClock::kWall);
  const size_t memory_bytes = GENERATE(size_t{64} << 20, size_t{64} << 10);  // the second one: samples are merged
  Streamed streamed;
  absl::StatusOr<Session> session =
      Session::Start({.events = ClockAndFaults(),
                      .clock = clock,
                      .memory_bytes = memory_bytes,
                      .on_batch = [&](const SessionBatch& batch) { streamed.Take(batch); }});
  REQUIRE(session.status() == absl::OkStatus());
  for (int i = 0; i < 4; ++i) {
    Churn(5);
    CHECK(session->Snapshot().status() == absl::OkStatus());
    CHECK(session->Poll() == absl::OkStatus());
  }
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CheckLaws(*profile);
  CHECK(streamed.batches > 0);
  CHECK(streamed.wrong == 0);
  CHECK(streamed.unresolved == 0);
  for (size_t event = 0; event < profile->events.size(); ++event) CHECK(streamed.sums[event] == profile->Total(event));
}

TEST_CASE("a flight recorder has no batches", "[session]") {
  const absl::StatusOr<Session> session =
      Session::Start({.mode = RingMode::kOverwrite, .on_batch = [](const SessionBatch&) {}});
  CHECK(session.status().code() == absl::StatusCode::kInvalidArgument);
}

#if defined(__cpp_exceptions)
TEST_CASE("a batch callback that throws ends the batches, not the session", "[session][law]") {
  std::atomic<int> calls{0};
  absl::StatusOr<Session> session = Session::Start({.events = ClockAndFaults(), .on_batch = [&](const SessionBatch&) {
                                                      ++calls;
                                                      throw calls.load();
                                                    }});
  REQUIRE(session.status() == absl::OkStatus());
  for (int i = 0; i < 3; ++i) {
    Churn(1);
    CHECK(session->Poll() == absl::OkStatus());
  }
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CheckLaws(*profile);
  CHECK(calls == 1);
  const std::vector<std::string>& notes = profile->accounting.notes;
  CHECK(std::count(notes.begin(), notes.end(), "on_batch threw an exception in batch 1, and was not called again") ==
        1);
}

TEST_CASE("a progress callback that throws loses nothing of the profile", "[session][law]") {
  int calls = 0;
  absl::StatusOr<Session> session = Session::Start({.events = ClockAndFaults(), .progress = [&](double) {
                                                      ++calls;
                                                      throw calls;
                                                    }});
  REQUIRE(session.status() == absl::OkStatus());
  for (const bool stop : {false, true}) {
    Churn(1);
    const absl::StatusOr<Profile> profile = stop ? session->Stop() : session->Snapshot();
    REQUIRE(profile.status() == absl::OkStatus());
    CHECK(profile->Check() == absl::OkStatus());
    if (stop) CheckLaws(*profile);  // While it runs, threads count on between the drain and the reading of counts.
    CHECK(calls == (stop ? 2 : 1));
    const std::vector<std::string>& notes = profile->accounting.notes;
    CHECK(std::ranges::count(notes, "progress threw an exception, and was not called again") == 1);
  }
}
#endif

TEST_CASE("what happens while a session is paused is counted as that", "[session][law]") {
  absl::StatusOr<Session> session = Session::Start({.events = ClockAndFaults(), .stacks = SessionStacks::kNone});
  REQUIRE(session.status() == absl::OkStatus());
  for (int i = 0; i < 3; ++i) {
    Fault(50);
    CHECK(session->Pause() == absl::OkStatus());
    CHECK(session->Pause() == absl::OkStatus());
    Fault(100);
    CHECK(session->Resume() == absl::OkStatus());
  }
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CheckLaws(*profile);
  const EventAccounting& faults = profile->events[1].accounting;
  CHECK(faults.paused + faults.lost >= 300);
  CHECK(session->Pause().code() == absl::StatusCode::kFailedPrecondition);
}

TEST_CASE("a flight recorder's profiles have the accounting of what they hold", "[session][law]") {
  absl::StatusOr<Session> session = Session::Start({.events = ClockAndFaults(),
                                                    .stacks = SessionStacks::kNone,
                                                    .mode = RingMode::kOverwrite,
                                                    .memory_bytes = 1 << 20});
  REQUIRE(session.status() == absl::OkStatus());
  for (int i = 0; i < 3; ++i) {
    Churn(2);
    const absl::StatusOr<Profile> snapshot = session->Snapshot();
    REQUIRE(snapshot.status() == absl::OkStatus());
    CHECK(snapshot->Check() == absl::OkStatus());
    CHECK(snapshot->Total(1).samples > 0);
    for (size_t event = 0; event < 2; ++event) {
      CHECK(snapshot->Total(event).samples == snapshot->events[event].accounting.delivered);
      CHECK(snapshot->Total(event).weight == snapshot->events[event].accounting.represented);
    }
  }
  Churn(2);
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CHECK(profile->Check() == absl::OkStatus());
  CHECK(profile->Total(1).samples > 0);
  CHECK(profile->Total(1).samples == profile->events[1].accounting.delivered);
  CHECK(profile->Total(1).weight == profile->events[1].accounting.represented);
}

TEST_CASE("no times off the CPU from records that are overwritten", "[session]") {
  CHECK(Session::Start({.clock = SessionClock::kWall, .mode = RingMode::kOverwrite}).status().code() ==
        absl::StatusCode::kInvalidArgument);
}

const ProfileThread* ThreadOf(const Profile& profile, pid_t tid) {
  for (const ProfileThread& thread : profile.threads) {
    if (thread.tid == static_cast<uint32_t>(tid)) return &thread;
  }
  return nullptr;
}

TEST_CASE("on and off are the wall clock, to the nanosecond", "[session][law][wall]") {
  const auto interval = GENERATE(1ms, 10s);  // with the second, hardly a thread is sampled
  std::atomic<bool> stop{false};
  std::atomic<pid_t> sleeper_tid{0};
  std::thread sleeper([&] {
    sleeper_tid = static_cast<pid_t>(syscall(SYS_gettid));
    while (!stop) std::this_thread::sleep_for(1ms);
  });
  while (sleeper_tid == 0) std::this_thread::yield();
  absl::StatusOr<Session> session =
      Session::Start({.interval = interval, .clock = SessionClock::kWall, .stacks = SessionStacks::kNone});
  REQUIRE(session.status() == absl::OkStatus());
  Spin(20ms);
  Churn(3);
  const uint64_t cpu_ns = sys::ClockNs(CLOCK_THREAD_CPUTIME_ID);
  const absl::StatusOr<Profile> profile = session->Stop();
  stop = true;
  sleeper.join();
  REQUIRE(profile.status() == absl::OkStatus());
  CheckLaws(*profile);
  for (const pid_t tid : {getpid(), sleeper_tid.load()}) {
    const ProfileThread* const thread = ThreadOf(*profile, tid);
    REQUIRE(thread != nullptr);
    CHECK(thread->on_ns + thread->off_ns == profile->to_ns - profile->from_ns);
  }
  const bool complete = std::none_of(profile->accounting.notes.begin(), profile->accounting.notes.end(),
                                     [](const std::string& note) { return note.find("missing") != std::string::npos; });
  CHECK(cpu_ns > 0);
  if (complete) CHECK(ThreadOf(*profile, getpid())->on_ns >= 20'000'000);
  std::vector<uint64_t> off_ns(profile->threads.size());
  const size_t off = profile->EventIndex(kOffCpuEvent);
  for (const ProfileSample& sample : profile->samples) {
    if (sample.event == off) off_ns[sample.thread] += sample.weight;
  }
  for (size_t i = 0; i < off_ns.size(); ++i) CHECK(off_ns[i] == profile->threads[i].off_ns);
}

TEST_CASE("a thread that runs from Start to Stop was on its CPU, though it was never switched",
          "[session][wall][law]") {
  for (int i = 0; i < 20; ++i) {
    absl::StatusOr<Session> session =
        Session::Start({.interval = 10s, .clock = SessionClock::kWall, .stacks = SessionStacks::kNone});
    REQUIRE(session.status() == absl::OkStatus());
    const uint64_t begin_ns = sys::ClockNs(CLOCK_THREAD_CPUTIME_ID);
    Spin(2ms);
    const uint64_t cpu_ns = sys::ClockNs(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
    const absl::StatusOr<Profile> profile = session->Stop();
    REQUIRE(profile.status() == absl::OkStatus());
    const ProfileThread* const thread = ThreadOf(*profile, getpid());
    REQUIRE(thread != nullptr);
    CHECK(thread->on_ns >= cpu_ns);
  }
}

TEST_CASE("time in which a session is paused is neither on nor off", "[session][wall][law]") {
  absl::StatusOr<Session> session = Session::Start({.clock = SessionClock::kWall, .stacks = SessionStacks::kNone});
  REQUIRE(session.status() == absl::OkStatus());
  REQUIRE(session->Pause() == absl::OkStatus());
  const uint64_t from_ns = sys::ClockNs(CLOCK_MONOTONIC);
  std::this_thread::sleep_for(20ms);
  const uint64_t paused_ns = sys::ClockNs(CLOCK_MONOTONIC) - from_ns;
  REQUIRE(session->Resume() == absl::OkStatus());
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  const ProfileThread* const thread = ThreadOf(*profile, getpid());
  REQUIRE(thread != nullptr);
  CHECK(thread->on_ns + thread->off_ns + paused_ns <= profile->to_ns - profile->from_ns);
}

TEST_CASE("only threads whose name matches are in the profile", "[session]") {
  absl::StatusOr<Session> session =
      Session::Start({.events = ClockAndFaults(), .stacks = SessionStacks::kNone, .thread_name = "worker-*"});
  REQUIRE(session.status() == absl::OkStatus());
  Fault(100);
  for (const char* const name : {"worker-1", "worker-2", "other"}) {
    std::thread([name] {
      pthread_setname_np(pthread_self(), name);
      Fault(100);
    }).join();
  }
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CHECK(profile->Check() == absl::OkStatus());
  REQUIRE(profile->threads.size() == 2);
  for (const ProfileThread& thread : profile->threads) CHECK(profile->strings[thread.name].starts_with("worker-"));
  CHECK(profile->Total(1).samples > 0);
  CHECK(profile->Total(1).samples < profile->events[1].accounting.delivered);
  CHECK(std::any_of(profile->accounting.notes.begin(), profile->accounting.notes.end(),
                    [](const std::string& note) { return note.find("worker-*") != std::string::npos; }));
}

TEST_CASE("a session without a thread of its own is driven by its descriptor", "[session][law]") {
  const auto threads = [] { return proc::ListThreads(getpid()).value_or(std::vector<pid_t>{}).size(); };
  const size_t before = threads();
  absl::StatusOr<Session> session = Session::Start(
      {.events = {{.event = "page-faults", .rate = Period{1}}}, .stacks = SessionStacks::kNone, .own_thread = false});
  REQUIRE(session.status() == absl::OkStatus());
  CHECK(threads() == before);
  REQUIRE(session->Poll() == absl::OkStatus());
  pollfd wanted{session->poll_fd(), POLLIN, 0};
  for (int turn = 0; turn < 1000 && poll(&wanted, 1, 0) == 0; ++turn) Fault(1000);
  CHECK((wanted.revents & POLLIN) != 0);
  CHECK(session->Poll() == absl::OkStatus());
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CheckLaws(*profile);
  CHECK(session->Poll().code() == absl::StatusCode::kFailedPrecondition);
}

// /proc of a process that is not dumpable belongs to root.
TEST_CASE("a process that is not dumpable says that its waits are not known", "[session][wall][law]") {
  const auto has_note = [](bool dumpable) {
    prctl(PR_SET_DUMPABLE, dumpable ? 1 : 0);
    absl::StatusOr<Session> session = Session::Start(
        {.clock = SessionClock::kWall, .stacks = SessionStacks::kBest, .look_after = 1ms, .own_thread = false});
    if (!session.ok()) return !dumpable;  // nothing to see
    std::atomic<bool> stop{false};
    std::thread sleeper([&] {
      while (!stop) std::this_thread::sleep_for(30ms);
    });
    for (int i = 0; i < 10; ++i) {
      std::this_thread::sleep_for(10ms);
      (void)session->Poll();
    }
    stop = true;
    sleeper.join();
    const absl::StatusOr<Profile> profile = session->Stop();
    if (!profile.ok()) return !dumpable;
    return std::any_of(profile->accounting.notes.begin(), profile->accounting.notes.end(),
                       [](const std::string& note) { return note.find("dumpable") != std::string::npos; });
  };
  CHECK(perfkit::testing::AsOrdinaryUser([&] { return has_note(false); }));
  CHECK(perfkit::testing::AsOrdinaryUser([&] { return !has_note(true); }));
}

// A fault in code of its own.
template <size_t kNumber>
[[gnu::noinline]] void FaultThere(char* memory) {
  static_cast<volatile char*>(memory)[kNumber * 4096] = static_cast<char>(kNumber);
}
template <size_t... kNumbers>
void FaultEverywhere(char* memory, std::index_sequence<kNumbers...>) {
  (FaultThere<kNumbers>(memory), ...);
}

TEST_CASE("what happens while names are looked up is in the next profile", "[session][law]") {
  constexpr size_t kPlaces = 48, kFaultsAStep = 600;
  size_t steps = 0;
  SessionOptions options{.events = {{.event = "page-faults", .rate = Period{1}}},
                         .stacks = SessionStacks::kNone,
                         .user_only = true,
                         .lines = false,
                         .progress = [&](double) {
                           ++steps;
                           Fault(kFaultsAStep);
                           std::this_thread::sleep_for(11ms);
                         }};
  absl::StatusOr<Session> session = Session::Start(std::move(options));
  REQUIRE(session.status() == absl::OkStatus());
  testing::FreshPages pages(kPlaces);
  FaultEverywhere(pages.data(), std::make_index_sequence<kPlaces>());
  const absl::StatusOr<Profile> snapshot = session->Snapshot();
  REQUIRE(snapshot.status() == absl::OkStatus());
  const size_t faults_meanwhile = steps * kFaultsAStep;
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CheckLaws(*profile);
  const EventAccounting& before = snapshot->events[0].accounting;
  const EventAccounting& after = profile->events[0].accounting;
  CHECK(after.counted - before.counted >= faults_meanwhile);
  // Each step fits into a ring of 64 KiB; all of them would not fit into one of 512 KiB.
  REQUIRE(faults_meanwhile * 40 > 512 << 10);
  const bool is_small = std::ranges::any_of(profile->accounting.notes, [](const std::string& note) {
    return !note.starts_with("stacks: ");
  });
  if (!is_small) CHECK(after.lost == before.lost);
}

}  // namespace
}  // namespace perfkit::session
