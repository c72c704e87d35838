// Forks wait for those who open and close, and these give way.
#include "src/sys/fork_registry.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <optional>
#include <thread>
#include <vector>

#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit::sys {
namespace {

TEST_CASE("threads that never leave a gap between them let others fork", "[fork][law]") {
  if (testing::kSanitized) SKIP_TEST("sanitizers do not stand forks among threads");
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      testing::Sleep(i * 1'000'000L);
      while (!stop) {
        const ForkBlocker outer;
        const ForkBlocker inner;
        testing::Sleep(4'000'000);
      }
    });
  }
  for (int i = 0; i < 20; ++i) {  // without an end if they do not let it
    const pid_t child = fork();
    if (child == 0) _exit(0);
    REQUIRE(waitpid(child, nullptr, 0) == child);
    testing::Sleep(5'000'000);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_CASE("a thread gives way to a fork for a limited time", "[fork][law]") {
  if (testing::kSanitized) SKIP_TEST("sanitizers do not stand forks among threads");
  std::optional<ForkBlocker> first(std::in_place);
  std::thread forker([] {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, nullptr, 0);
  });
  // Those that come once it waits give way; the first holds on until they are done.
  std::atomic<uint64_t> longest_ns{0};
  std::thread others([&] {
    for (int i = 0; i < 1000 && longest_ns < 10'000'000; ++i) {
      const uint64_t begin = testing::NowNs();
      { const ForkBlocker next; }
      longest_ns = testing::NowNs() - begin;
      testing::Sleep(1'000'000);
    }
  });
  for (int i = 0; i < 1000 && longest_ns < 10'000'000; ++i) testing::Sleep(10'000'000);
  CHECK(longest_ns >= 10'000'000);
  first.reset();
  others.join();
  forker.join();
}

}  // namespace
}  // namespace perfkit::sys
