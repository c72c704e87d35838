// What is noted of releases, and what follows from it about holders.
#include "src/sys/locks/releases.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "src/sys/locks/recorder.h"
#include "tests/locks/reader.h"

namespace perfkit::sys::locks {
namespace {

// Records a wait for a lock that thread 1 holds, while `releasers` release it one after the other.
LockWait WaitWhileReleasedBy(std::initializer_list<uint32_t> releasers) {
  std::mutex mutex;  // Only its address matters.
  Reader reader;
  RecordedWait wait(&mutex, LockKind::kMutex, 1, false);
  for (const uint32_t tid : releasers) NoteRelease(&mutex, tid);
  wait.End(true);
  const std::vector<LockWait> waits = reader.Of(&mutex);
  REQUIRE(waits.size() == 1);
  return waits[0];
}

TEST_CASE("a lock has one holder if that thread alone released it, and once", "[locks]") {
  CHECK(WaitWhileReleasedBy({1}).has_one_holder);
  CHECK(!WaitWhileReleasedBy({}).has_one_holder);
  CHECK(!WaitWhileReleasedBy({2}).has_one_holder);
  const LockWait wait = WaitWhileReleasedBy({1, 2, 1});
  CHECK((wait.holder == 1 && wait.releaser == 1));
  CHECK(!wait.has_one_holder);
}

TEST_CASE("a release has the thread and the time of one call", "[locks][law]") {
  constexpr uint32_t kReleases = 200'000;
  const auto table = std::make_unique<ReleaseTable>();
  const int lock = 0;
  std::atomic<bool> is_done{false};
  std::thread releasing([&] {
    for (uint32_t i = 1; i <= kReleases; ++i) table->Note(&lock, i, i);
    is_done = true;
  });
  uint64_t torn = 0;
  while (!is_done) {
    const Release last = table->Last(&lock);
    const uint32_t tid = ReleaseTable::TidOf(last, &lock);
    if (tid != 0 && tid != last.at_ns) ++torn;
  }
  releasing.join();
  CHECK(torn == 0);
  const Release last = table->Last(&lock);
  CHECK(ReleaseTable::TidOf(last, &lock) == kReleases);
  CHECK(last.count == kReleases);
}

}  // namespace
}  // namespace perfkit::sys::locks
