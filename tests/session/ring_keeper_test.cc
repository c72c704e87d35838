// Rings that are emptied while another thread looks up names.
#include "src/session/ring_keeper.h"

#include <sys/wait.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <thread>

#include "src/session/aggregator.h"
#include "tests/session/support.h"
#include "tests/support/record_builder.h"

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
TEST_CASE("a child that is forked while a keeper is open can close, open and stop it", "[session][ring_keeper][law]") {
  RingKeeper keeper([] { std::this_thread::sleep_for(1ms); });
  keeper.Open();
  for (int round = 0; round < 10; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      keeper.Close();
      keeper.Open();
      keeper.Stop();
      _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  keeper.Close();
}

// A record that is added lies in a ring that is being read. Memory becomes full with one of them, and a batch is given.
TEST_CASE("a keeper stays closed while records are added", "[session][ring_keeper][law]") {
  AttrBits bits;
  bits.sample_type = kSampleIp | kSampleTid | kSampleTime;
  bits.sample_id_all = true;
  const SampleLayout layout(bits);
  RingKeeper keeper([] {}), opened([] {});
  int batches = 0;
  Aggregator aggregator({{.name = "page-faults"}},
                        {.pid = 1, .memory_bytes = 64 << 10, .on_batch = [&](const SessionBatch&) { ++batches; }});
  uint64_t number = 0;
  const auto add = [&] {
    ++number;
    const std::string bytes = testing::BuildSample(bits, {.ip = number, .time = number, .pid = 1, .tid = 1, .misc = 2});
    SamplerRecord record{testing::AsRecord(bytes), 0};
    record.weight = 1;
    aggregator.Add(record, layout);
  };
  add();
  aggregator.SetKeeper(&opened);
  aggregator.GiveBatch([](double) {});
  CHECK(batches == 1);
  opened.Stop();
  CHECK(opened.tid() != 0);
  aggregator.SetKeeper(&keeper);
  while (batches == 1) add();
  keeper.Stop();
  CHECK(keeper.tid() == 0);  // no thread was ever started
}

}  // namespace
}  // namespace perfkit::session
