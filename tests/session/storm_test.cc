// A session that several threads control at once, while others work, begin and end. What ThreadSanitizer runs of
// sessions.
#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "perfkit/frame_counter.h"
#include "perfkit/session.h"
#include "perfkit/task_counter.h"
#include "src/sys/files.h"
#include "tests/session/support.h"
#include "tests/support/work.h"

namespace perfkit::session {
namespace {

using namespace std::chrono_literals;

// What went wrong, of any thread: Catch's own checks are for one.
class Faults {
 public:
  void Expect(bool holds, const std::string& what) {
    if (holds) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    faults_.push_back(what);
  }
  std::vector<std::string> Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(faults_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> faults_;
};

// Threads with zones and tasks that work, and start others that end soon, which go on with the task.
class BusyThreads {
 public:
  BusyThreads(FrameCounter& frames, TaskCounter& tasks) : frames_(frames), tasks_(tasks) {
    for (std::thread& thread : threads_) thread = std::thread([this] { Work(); });
  }
  ~BusyThreads() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  BusyThreads(const BusyThreads&) = delete;
  BusyThreads& operator=(const BusyThreads&) = delete;

 private:
  void Work() {
    while (!stop_) {
      PERFKIT_ZONE(frames_, "busy");
      TaskCounter::Task task = tasks_.Create({"task"});
      task.Resume();
      Fault(3);
      task.Suspend();
      std::thread([this, &task] {
        PERFKIT_ZONE(frames_, "brief");
        task.Resume();
        PERFKIT_TASK_ZONE(tasks_, "zone");
        Spin(50us);
        task.Suspend();
      }).join();
      std::this_thread::sleep_for(5ms);
    }
  }

  FrameCounter& frames_;
  TaskCounter& tasks_;
  std::atomic<bool> stop_{false};
  std::array<std::thread, 2> threads_;
};

// One of the threads that control the session; which one runs is shared.
class Controller {
 public:
  struct Shared {
    FrameCounter frames{{.events = {"page-faults"}}};
    TaskCounter tasks{{.events = {"page-faults"}}};
    Faults faults;
    std::mutex mutex;
    std::shared_ptr<Session> session;  // no thread destroys it while another one uses it
    std::atomic<uint64_t> started{0}, profiles{0}, batches{0};
  };

  Controller(Shared& shared, uint32_t seed) : shared_(shared), random_(seed) {}

  void Step() {
    const std::shared_ptr<Session> session = Current();
    const uint32_t step = Below(8);
    if (session == nullptr || step == 0) return Start();
    if (step == 1) return CheckProfile(session->Stop(), "Stop");
    if (step == 2) return CheckProfile(session->Snapshot(), "Snapshot");
    if (step == 3) return CheckStatus(session->Pause(), "Pause");
    if (step == 4) return CheckStatus(session->Resume(), "Resume");
    if (step == 5) return (void)session->running();
    CheckStatus(session->Poll(), "Poll");
  }

  // If no thread has stopped the session, so that there is a profile in any case.
  void Finish() { CheckProfile(Current()->Stop(), "Stop"); }

 private:
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }

  std::shared_ptr<Session> Current() {
    const std::lock_guard<std::mutex> lock(shared_.mutex);
    return shared_.session;
  }

  SessionOptions AnyOptions() {
    SessionOptions options{.events = ClockAndFaults(), .memory_bytes = 1 << 20, .lines = false};
    options.stacks = Below(2) == 0 ? SessionStacks::kNone : SessionStacks::kFramePointers;
    options.own_thread = Below(4) != 0;
    options.replace = Below(2) == 0;
    if (Below(2) == 0) options.frames = &shared_.frames;
    if (Below(2) == 0) options.tasks = &shared_.tasks;
    if (Below(4) == 0) {
      options.mode = RingMode::kOverwrite;
      return options;
    }
    if (Below(2) == 0) options.clock = SessionClock::kWall;
    if (Below(4) == 0) options.stop_after = 30ms;
    if (Below(2) == 0) options.on_batch = [&shared = shared_](const SessionBatch&) { ++shared.batches; };
    return options;
  }

  void Start() {
    absl::StatusOr<Session> session = Session::Start(AnyOptions());
    CheckStatus(session.status(), "Start");
    if (!session.ok()) return;
    ++shared_.started;
    auto started = std::make_shared<Session>(*std::move(session));
    const std::lock_guard<std::mutex> lock(shared_.mutex);
    shared_.session.swap(started);  // the other one is destroyed when its last user has returned
  }

  // Another thread may have stopped or replaced it.
  void CheckStatus(const absl::Status& status, const char* call) {
    const bool fine = status.ok() || status.code() == absl::StatusCode::kFailedPrecondition;
    shared_.faults.Expect(fine, call + (": " + std::string(status.message())));
  }

  void CheckProfile(const absl::StatusOr<Profile>& profile, const char* call) {
    CheckStatus(profile.status(), call);
    if (!profile.ok()) return;
    ++shared_.profiles;
    shared_.faults.Expect(profile->Check().ok(), call + (": " + std::string(profile->Check().message())));
    for (size_t i = 0; i < 2; ++i) {
      const EventAccounting& accounting = profile->events[i].accounting;
      const Profile::Sum total = profile->Total(i);
      const std::string what = call + (" of " + profile->events[i].name);
      shared_.faults.Expect(total.samples == accounting.delivered, what + ": samples");
      shared_.faults.Expect(total.weight == accounting.represented, what + ": weights");
    }
  }

  Shared& shared_;
  std::mt19937 random_;
};

void Storm(int steps) {
  // Abseil makes its texts of errors at their first use, by code that ThreadSanitizer does not see: here, by one
  // thread.
  (void)sys::ReadFile("/proc/none");
  Controller::Shared shared;
  {
    const BusyThreads busy(shared.frames, shared.tasks);
    std::array<std::thread, 3> threads;
    for (uint32_t i = 0; i < threads.size(); ++i) {
      threads[i] = std::thread([&shared, i, steps] {
        Controller controller(shared, i + 1);
        for (int step = 0; step < steps; ++step) controller.Step();
      });
    }
    for (int i = 0; i < steps; ++i) {
      Fault(2);
      shared.frames.Mark();
    }
    for (std::thread& thread : threads) thread.join();
  }
  REQUIRE(shared.started > 0);
  Controller(shared, 0).Finish();
  shared.session.reset();
  CHECK(shared.faults.Take() == std::vector<std::string>{});
  CHECK(shared.profiles > 0);
}

TEST_CASE("a session does as it should while several threads control it", "[session][storm][law]") {
  Storm(testing::kSanitized ? 8 : 100);  // names take ten times as long under a sanitizer
}

TEST_CASE("a session does as it should while several threads control it, for long", "[.heavy][session_storm][law]") {
  Storm(1'000);
}

}  // namespace
}  // namespace perfkit::session
