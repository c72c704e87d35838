// Rings that are emptied while another thread looks up names.
#include "src/session/ring_keeper.h"

#include <sys/wait.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "src/sys/clock.h"
#include "tests/session/support.h"

namespace perfkit::session {
namespace {

using namespace std::chrono_literals;

void WaitUntilMore(const std::atomic<int>& count, int than) {
  while (count <= than) std::this_thread::sleep_for(1ms);
}

TEST_CASE("an open keeper keeps again and again, a closed one never", "[session][ring_keeper][law]") {
  std::atomic<int> kept{0};
  std::atomic<bool> is_inside{false}, may_not{true};
  std::atomic<int> wrong{0};
  RingKeeper keeper([&] {
    is_inside = true;
    wrong += may_not;
    ++kept;
    is_inside = false;
  });
  CHECK(keeper.tid() == 0);
  for (int round = 0; round < 20; ++round) {
    may_not = false;
    keeper.Open();
    REQUIRE(keeper.is_open());
    WaitUntilMore(kept, kept + 2);
    keeper.Close();
    may_not = true;
    CHECK_FALSE(keeper.is_open());
    CHECK_FALSE(is_inside);
  }
  CHECK(keeper.tid() != 0);
  CHECK(keeper.tid() != gettid());
  keeper.Stop();
  CHECK(wrong == 0);
  const int before = kept;
  keeper.Open();
  CHECK_FALSE(keeper.is_open());
  CHECK(kept == before);
}

TEST_CASE("a keeper that is closed at once, or never opened, ends", "[session][ring_keeper][law]") {
  std::atomic<int> kept{0};
  {
    RingKeeper never([&] { ++kept; });
  }
  CHECK(kept == 0);
  for (int round = 0; round < 200; ++round) {
    RingKeeper keeper([&] { ++kept; });
    const KeptRings rings(&keeper);
  }
  const KeptRings none(nullptr);
}

// The child has no thread that keeps, and the mutex may have been locked when it was forked.
TEST_CASE("a child that is forked while a keeper is open can close it", "[session][ring_keeper][law]") {
  RingKeeper keeper([] { std::this_thread::sleep_for(1ms); });
  keeper.Open();
  for (int round = 0; round < 10; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      keeper.Close();
      _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  keeper.Close();
}

}  // namespace
}  // namespace perfkit::session
