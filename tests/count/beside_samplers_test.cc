// Counts on a thread whose events others sample, with stacks: the kernel prepares one sample for all events, so that
// records of other events get larger, too.
#include <catch2/catch.hpp>
#include <chrono>
#include <string>

#include "perfkit/counter.h"
#include "perfkit/frame_counter.h"
#include "tests/support/raw_sampling.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

constexpr size_t kPages = 300;

TEST_CASE("a set counts what happens, whatever others sample", "[beside_samplers]") {
  auto set = CounterSet::Open({"page-faults", "minor-faults"}, Target::ThisThread(), {.require_all = false});
  REQUIRE(set.ok());
  testing::FreshPages memory(kPages);
  for (const bool by_child : {false, true}) {
    if (by_child && testing::kSanitized) continue;
    const testing::RawSampling later(by_child);  // Newer events come first.
    memory.Forget();
    const testing::OtherFaults during;
    Snapshot begin, end;
    set->Read(begin);
    memory.Touch(0, kPages);
    set->Read(end);
    const uint64_t most = during.Beside(0);
    for (size_t i = 0; i < set->size(); ++i) {
      const Count count = set->Difference(begin, end, i);
      if (!count.validity.counted()) continue;
      INFO(set->name(i) << " by " << ReadPathName(set->path(i)));
      CHECK(count.value >= kPages);
      CHECK(count.value <= most);
    }
  }
}

TEST_CASE("frames and hitches have the faults that happen, whatever others sample", "[beside_samplers]") {
  FrameCounter frames({.events = {"page-faults"}, .hitch_budget = std::chrono::nanoseconds(1)});
  Hitch last;
  frames.OnHitch([&](const Hitch& hitch) { last = hitch; });
  testing::FreshPages memory(kPages);
  frames.Mark();
  const testing::RawSampling later(false);
  for (int i = 0; i < 3; ++i) {
    memory.Forget();
    const testing::OtherFaults during;
    frames.Mark();
    memory.Touch(0, kPages);
    frames.Mark();
    const uint64_t most = during.Beside(0);
    if (!last.faults_known) SKIP_TEST("page faults are not counted here");
    CHECK(last.faults >= kPages);
    CHECK(last.faults <= most);
    CHECK(last.fault_address_count > 0);
    if ((frames.last().missing & 1) == 0) {
      CHECK(frames.last().values[0] >= kPages);
      CHECK(frames.last().values[0] <= most);
    }
  }
}

}  // namespace
}  // namespace perfkit
