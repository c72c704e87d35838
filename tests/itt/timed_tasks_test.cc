// Times of tasks in a forked child.
#include "src/itt/timed_tasks.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <utility>

namespace perfkit::itt {
namespace {

TEST_CASE("itt timed tasks: the end of one that began in a pause belongs to it, and is in no sum", "[itt]") {
  TimedTasks timed;
  timed.BeginUntimed(nullptr, Id{1, 0, 0});
  timed.End(nullptr, Id{1, 0, 0}, 100);
  CHECK(timed.Take().by_name.empty());
  CHECK(timed.Take().mismatched == 0);
  CHECK(timed.Take().open == 0);
  timed.End(nullptr, Id{1, 0, 0}, 100);
  CHECK(timed.Take().mismatched == 1);
}

TEST_CASE("itt timed tasks: frames without valid times are in no sum, and a sum is exact", "[itt][law]") {
  constexpr uint64_t kMax = UINT64_MAX, kNow = kMax / 3;
  TimedTasks timed;
  timed.Submit("frame", 10, 30, 30);
  CHECK(timed.Take().untimed == 0);
  for (const auto& [begin, end] :
       {std::pair{0, kMax - 1}, {10, 31}, {20, 10}, {10, kNoTimestamp}, {kNoTimestamp, 20}}) {
    timed.Submit("frame", begin, end, 30);
  }
  CHECK(timed.Take().untimed == 5);
  for (int i = 0; i < 5; ++i) timed.Submit("frame", 0, kNow, kNow);  // Three are more than fit.
  const TimedTasks::Sum sum = timed.Take().by_name["frame"];
  CHECK(timed.Take().untimed == 8);
  CHECK(sum.calls == 3);
  CHECK(sum.total_ns == 20 + 2 * kNow);
  CHECK(sum.max_ns == kNow);
}

TEST_CASE("itt timed tasks: a forked child reads the times, whatever other threads did at the fork",
          "[itt][fork][law]") {
  TimedTasks timed;
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> submitted{0};
  std::thread submitter([&] {
    for (; !stop; ++submitted) timed.Submit("frame", 1, 2, 3);
  });
  int hung = 0;
  for (int i = 0; i < 30 && hung == 0; ++i) {
    // Without the lock, so that the other thread holds it at most forks.
    for (const uint64_t before = submitted; submitted < before + 1000;) std::this_thread::yield();
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);  // A child that waits for a lock would never end.
      timed.Submit("child", 1, 2, 3);
      _exit(timed.Take().by_name.contains("child") ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    hung += status != 0;
  }
  stop = true;
  submitter.join();
  CHECK(hung == 0);
}

}  // namespace
}  // namespace perfkit::itt
