// A thread's log of tasks tells where it was, whenever it begins and whatever it loses.
#include "src/count/task/task_log.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>

namespace perfkit::count {
namespace {

constexpr uint64_t kTaskEpoch = 7;

// In these tests a task is always awaited by the same ones.
uint16_t AwaitersOf(uint64_t task) { return static_cast<uint16_t>(1300 * task); }

// What a log says: when each task ran, and when that is not known.
struct ToldTasks {
  std::map<uint64_t, uint64_t> ticks;
  uint64_t unknown = 0, lost = 0, since = 0, wrong_awaiters = 0;
  bool is_known = false;
  TaskPosition position{};

  void Read(TaskLog& log) {
    log.Read(kTaskEpoch, [&](const ZoneRecord& record) { Add(record); });
  }
  void Until(uint64_t to) {
    (is_known ? ticks[position.task] : unknown) += to - since;
    since = to;
  }
  void SetPosition(const TaskPosition& now) {
    position = now;
    wrong_awaiters += position.awaiters != AwaitersOf(position.task) ? 1 : 0;
  }
  void Add(const ZoneRecord& record) {
    switch (record.kind) {
      case ZoneRecordKind::kBegin:
        since = record.words[1];
        SetPosition({record.id, static_cast<uint16_t>(record.words[3]), record.words[2]});
        is_known = true;
        return;
      case ZoneRecordKind::kTask:
        Until(record.words[0]);
        SetPosition({record.id, static_cast<uint16_t>(record.missing), record.words[1]});
        is_known = true;
        return;
      case ZoneRecordKind::kAbandon: is_known = false; return;
      case ZoneRecordKind::kGap:
        Until(record.words[0]);
        lost += record.words[2];
        is_known = false;
        return;
      case ZoneRecordKind::kEnd: return Until(record.words[0]);
      default: FAIL("a record of another log");
    }
  }
};

TEST_CASE("a log has each task's time, to the tick, and losses have the rest", "[task][recording]") {
  const size_t words = GENERATE(1 << 9, 1 << 16);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    TaskLog log(words);
    ToldTasks told;
    std::map<uint64_t, uint64_t> ran;
    uint64_t now = 1000, switches = 0, listens_from = 0;
    TaskPosition position{};
    for (int i = 0; i < 3000; ++i) {
      const uint64_t before = now;
      now += 1 + random() % 100;
      if (listens_from != 0) ran[position.task] += now - before;
      TaskPosition next{};
      if (random() % 3 != 0) {
        next.node = static_cast<uint16_t>(1 + random() % 9);
        next.task = 1 + random() % 50;
        next.awaiters = AwaitersOf(next.task);
      }
      log.Add(position, before, next, now);
      switches += listens_from != 0 ? 1 : 0;
      position = next;
      if (i == 100) log.Start(kTaskEpoch), listens_from = now;
      if (random() % 80 == 0) told.Read(log);
    }
    // The loss at the end, if there is one, ends with room.
    told.Read(log);
    log.End(position, now, now + 10);
    ran[position.task] += 10;
    told.Read(log);
    const uint64_t still_lost = log.CurrentLoss().records;
    CHECK(told.lost + still_lost <= switches + 1);
    CHECK(told.wrong_awaiters == 0);
    if (words == 1 << 16) CHECK(told.lost + still_lost == 0);
    if (still_lost != 0) continue;
    uint64_t known = 0;
    for (const auto& [task, ticks] : told.ticks) {
      CHECK(ticks <= ran[task]);
      if (told.lost == 0) CHECK(ticks == ran[task]);
      known += ticks;
    }
    CHECK(known + told.unknown == now + 10 - listens_from);
  }
}

TEST_CASE("nothing is logged without a reader", "[task][recording]") {
  TaskLog log(1 << 9);
  ToldTasks told;
  log.Add({}, 1, {1, 0, 1}, 2);
  log.Start(kTaskEpoch);
  log.Start(0);
  log.Add({1, 0, 1}, 2, {}, 3);
  told.Read(log);
  CHECK((told.ticks.empty() && log.CurrentLoss().records == 0));
}

TEST_CASE("a lost kAbandon is lost from the record on that it makes wrong", "[task][recording]") {
  TaskLog log(1 << 9);
  ToldTasks told;
  log.Start(kTaskEpoch);
  uint64_t now = 1000;
  while (log.CurrentLoss().records == 0) {
    log.Add({}, now, {1, 0, 1}, now + 1);
    if (log.CurrentLoss().records == 0) log.Abandon(now + 1);
    ++now;
  }
  CHECK(log.CurrentLoss().from_ticks >= 1001);
}

}  // namespace
}  // namespace perfkit::count
