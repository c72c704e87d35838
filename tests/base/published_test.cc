// A replaced value stays as long as it has a reader, and no longer.
#include "src/base/published.h"

#include <array>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit::base {
namespace {

// Says when it is gone.
struct Watched {
  explicit Watched(int* gone, int number = 0) : gone(gone), number(number) {}
  Watched(const Watched&) = delete;
  ~Watched() { ++*gone; }
  int* gone;
  int number;
};

using PublishedWatched = Published<Watched>;

TEST_CASE("without readers the old value is freed at once") {
  int gone = 0;
  {
    PublishedWatched published(std::make_unique<Watched>(&gone, 1));
    published.Publish(std::make_unique<Watched>(&gone, 2));
    CHECK(gone == 1);
    CHECK((*PublishedWatched::Reader(published)).number == 2);
  }
  CHECK(gone == 2);
}

TEST_CASE("a reader keeps what it reads, and what was replaced since") {
  int gone = 0;
  PublishedWatched published(std::make_unique<Watched>(&gone, 1));
  {
    const PublishedWatched::Reader reader(published);
    published.Publish(std::make_unique<Watched>(&gone, 2));
    published.Publish(std::make_unique<Watched>(&gone, 3));
    for (int i = 0; i < 5; ++i) published.Collect();
    CHECK(gone == 0);
    CHECK((*reader).number == 1);
    int waiting = 0;
    published.ForEachOld([&](const Watched&) { ++waiting; });
    CHECK(waiting == 2);
  }
  published.Collect();
  CHECK(gone == 2);
}

TEST_CASE("readers that come one after the other, always one of them there, hold nothing up for ever") {
  int gone = 0;
  PublishedWatched published(std::make_unique<Watched>(&gone, 0));
  auto reader = std::make_unique<PublishedWatched::Reader>(published);
  for (int i = 1; i <= 100; ++i) {
    published.Publish(std::make_unique<Watched>(&gone, i));
    auto next = std::make_unique<PublishedWatched::Reader>(published);
    reader = std::move(next);
    published.Collect();
  }
  CHECK(gone >= 98);
}

TEST_CASE("readers on threads see whole values while they are replaced") {
  if (testing::kHandlersUnseen) SKIP_TEST("ThreadSanitizer does not see how code of handlers synchronizes");
  struct Pair {
    uint64_t a = 0, b = 0;
    ~Pair() { a = 1, b = 3; }
  };
  Published<Pair> published(std::make_unique<Pair>());
  std::atomic<bool> stop = false;
  std::atomic<uint64_t> wrong = 0, reads = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!stop.load(std::memory_order_relaxed)) {
        const Published<Pair>::Reader outer(published);
        const Published<Pair>::Reader inner(published);
        wrong += (*outer).b != 2 * (*outer).a || (*inner).b != 2 * (*inner).a || (*inner).a < (*outer).a;
        ++reads;
      }
    });
  }
  for (uint64_t i = 1; i < 20'000 || reads < 10'000; ++i) {
    auto next = std::make_unique<Pair>();
    next->a = i;
    next->b = 2 * i;
    published.Publish(std::move(next));
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace perfkit::base
