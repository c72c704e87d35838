// Tests the lists of threads that come and go, without threads.
#include "src/sample/thread_tracker.h"

#include <catch2/catch.hpp>
#include <set>

namespace perfkit::sample {
namespace {

// Threads that exist, and those that are attached.
struct FakeThreads {
  std::vector<pid_t> existing;
  std::set<pid_t> attached;
  std::set<pid_t> unread;  // Their rings hold records.
  std::vector<pid_t> closed;
  absl::Status answer;  // To each attempt to attach.

  void Attach(ThreadTracker& tracker) {
    tracker.AttachNewcomers([this] { return existing; }, [this](pid_t tid) { return attached.contains(tid); },
                            [this](pid_t tid) {
                              if (answer.ok()) attached.insert(tid);
                              return answer;
                            });
  }
  void EndDrain(ThreadTracker& tracker) {
    tracker.CloseEnded([this](pid_t tid) { return !unread.contains(tid); },
                       [this](pid_t tid) { closed.push_back(tid); });
    tracker.CountMissed([this](pid_t tid) { return attached.contains(tid); });
    tracker.EndDrain();
  }
};

TEST_CASE("each new thread is attached or missed, once", "[sample][thread_tracker]") {
  ThreadTracker tracker;
  FakeThreads threads{.existing = {1, 2}, .attached = {}, .unread = {}, .closed = {}, .answer = absl::OkStatus()};
  CHECK_FALSE(tracker.has_changes());
  tracker.Born(2);
  tracker.Born(3);  // It has ended meanwhile.
  CHECK(tracker.has_changes());
  threads.Attach(tracker);
  threads.EndDrain(tracker);
  CHECK(threads.attached == std::set<pid_t>{1, 2});
  CHECK(tracker.missed() == 1);
  CHECK_FALSE(tracker.has_changes());

  threads.existing.push_back(4);
  threads.answer = absl::ResourceExhaustedError("no ring");
  tracker.Born(4);
  for (int drain = 0; drain < 3; ++drain) {
    threads.Attach(tracker);
    threads.EndDrain(tracker);
    CHECK(tracker.missed() == 2);
  }
  threads.answer = absl::NotFoundError("it has ended");
  threads.existing.push_back(5);
  threads.Attach(tracker);
  CHECK(tracker.missed() == 2);
  threads.answer = absl::OkStatus();
  threads.Attach(tracker);
  CHECK(threads.attached.contains(4));
  CHECK(tracker.missed() == 2);
}

TEST_CASE("the rings of an ended thread are closed a drain later", "[sample][thread_tracker]") {
  ThreadTracker tracker;
  FakeThreads threads;
  tracker.Ending(7);
  CHECK_FALSE(tracker.has_changes());
  threads.EndDrain(tracker);
  CHECK(threads.closed.empty());
  CHECK(tracker.has_changes());
  tracker.FoundEnded(7);  // Its ring has hung up, too.
  CHECK_FALSE(tracker.TakeRescan());
  threads.EndDrain(tracker);
  CHECK(threads.closed == std::vector<pid_t>{7});
  CHECK_FALSE(tracker.has_changes());
}

TEST_CASE("the rings of an ended thread stay open until they are read", "[sample][thread_tracker]") {
  ThreadTracker tracker;
  FakeThreads threads;
  threads.unread = {7};
  tracker.Ending(7);
  tracker.Ending(9);
  for (int drain = 0; drain < 3; ++drain) threads.EndDrain(tracker);
  CHECK(threads.closed == std::vector<pid_t>{9});
  CHECK(tracker.has_changes());
  threads.unread.clear();
  threads.EndDrain(tracker);
  CHECK(threads.closed == std::vector<pid_t>{9, 7});
  CHECK_FALSE(tracker.has_changes());
}

TEST_CASE("a thread that is found to have ended leaves its number to another one", "[sample][thread_tracker]") {
  ThreadTracker tracker;
  FakeThreads threads;
  tracker.FoundEnded(8);
  tracker.FoundEnded(8);
  CHECK(tracker.TakeRescan());
  CHECK_FALSE(tracker.TakeRescan());
  threads.EndDrain(tracker);
  threads.EndDrain(tracker);
  CHECK(threads.closed == std::vector<pid_t>{8});
}

TEST_CASE("threads that can't be listed are looked for again", "[sample][thread_tracker]") {
  ThreadTracker tracker;
  tracker.AttachNewcomers([] { return absl::UnavailableError("no /proc"); }, [](pid_t) { return false; },
                          [](pid_t) { return absl::OkStatus(); });
  CHECK(tracker.TakeRescan());
}

}  // namespace
}  // namespace perfkit::sample
