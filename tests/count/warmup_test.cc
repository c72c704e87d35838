// Warmup: what it holds, what it lets go, and that it makes opening cheaper or at least no dearer.
#include "perfkit/warmup.h"

#include <catch2/catch.hpp>
#include <utility>

#include "perfkit/counter.h"
#include "tests/support/fake_kernel.h"

namespace perfkit {
namespace {

TEST_CASE("one event of each kind is held until Cooldown, and nothing after", "[warmup]") {
  testing::FakeKernel fake;
  {
    Warmup warm({"task-clock", "page-faults", "cpu-clock"});
    CHECK(warm.size() == 3);
    CHECK(fake.Leaks() != "");
    Warmup moved = std::move(warm);
    CHECK(moved.size() == 3);
    moved.Cooldown();
    CHECK(moved.size() == 0);
    CHECK(fake.Leaks() == "");
    moved.Cooldown();
  }
  CHECK(fake.Leaks() == "");
}

TEST_CASE("what cannot be opened stays cold, and is no error", "[warmup]") {
  Warmup warm({"no-such-event", "cycles:k", "page-faults"});
  CHECK(warm.size() >= 1);
  testing::FakeKernel fake;
  fake.FailAll(testing::Call::kPerfEventOpen, 24 /* EMFILE */);
  const Warmup none({"page-faults"});
  CHECK(none.size() == 0);
}

TEST_CASE("held events are disabled: they count nothing and change no count", "[warmup]") {
  testing::FakeKernel fake;
  static bool all_disabled;
  all_disabled = true;
  fake.below().perf_event_open = [](const sys::PerfEventAttr* attr, pid_t pid, int cpu, int group,
                                    unsigned long flags) {
    all_disabled = all_disabled && attr->disabled == 1;
    return sys::kLinux.perf_event_open(attr, pid, cpu, group, flags);
  };
  const Warmup warm({"task-clock", "page-faults"});
  CHECK(warm.size() == 2);
  CHECK(all_disabled);
}

}  // namespace
}  // namespace perfkit
