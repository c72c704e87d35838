// Times of tasks in a forked child.
#include "src/itt/timed_tasks.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

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

TEST_CASE("itt timed tasks: a forked child reads the times, whatever other threads did at the fork",
          "[itt][fork][law]") {
  TimedTasks timed;
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> submitted{0};
  std::thread submitter([&] {
    for (; !stop; ++submitted) timed.Submit("frame", 1, 2);
  });
  int hung = 0;
  for (int i = 0; i < 30 && hung == 0; ++i) {
    // Without the lock, so that the other thread holds it at most forks.
    for (const uint64_t before = submitted; submitted < before + 1000;) std::this_thread::yield();
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);  // A child that waits for a lock would never end.
      timed.Submit("child", 1, 2);
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
