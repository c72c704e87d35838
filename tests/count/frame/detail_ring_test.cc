// Detail rings in ordinary memory: pairs of switches, faults, overwriting, malformed records.
#include "src/count/frame/detail_ring.h"

#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <random>

#include "tests/count/frame/made_up_rings.h"
#include "tests/support/signal_storm.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit::count {
namespace {

TEST_CASE("switches: pairs become preemptions and waits with their times") {
  MadeUpRing ring(64);
  ring.Switch(true, false, 100, 0);  // of an earlier frame
  ring.Switch(false, false, 200, 0);
  const uint64_t from = ring.head();
  ring.Switch(true, true, 1000, 0);
  ring.Switch(false, false, 1500, 0);
  ring.Switch(true, false, 2000, 0);
  ring.Switch(false, false, 9000, 1);
  ring.Switch(true, true, 9500, 1);
  ring.Switch(false, false, 9600, 1);
  const SwitchTally tally = TallySwitches(ring.view(), from);
  CHECK(tally.preemptions == 2);
  CHECK(tally.preempted_ns == 600);
  CHECK(tally.waits == 1);
  CHECK(tally.waited_ns == 7000);
  CHECK(tally.migrations == 1);
  CHECK(!tally.at_least);
  const SwitchTally later = TallySwitches(ring.view(), from + kSwitchRecordBytes);
  CHECK(later.preemptions == 1);
  CHECK(later.at_least);  // how long the thread was away before its first switch in is unknown
}

TEST_CASE("switches: what was overwritten is told, for every start of the 64-bit stream") {
  for (const uint64_t start : {uint64_t{0}, uint64_t{64}, (uint64_t{1} << 32) - 64, uint64_t{0} - 4096}) {
    MadeUpRing ring(16, start);
    for (uint64_t pair = 0; pair < 20; ++pair) {
      ring.Switch(true, false, pair * 100, 0);
      ring.Switch(false, false, pair * 100 + 10, 0);
    }
    const SwitchTally tally = TallySwitches(ring.view(), start);
    CHECK(tally.at_least);
    CHECK(tally.waits == 8);
    CHECK(tally.waited_ns == 80);
  }
}

TEST_CASE("faults: the number is exact even when the addresses are gone") {
  for (const size_t size : {kFaultRecordBytes, kFaultRecordBytes + 24}) {
    MadeUpFaults ring(16);
    ring.Fault(0x7000, size);
    const FaultMark from = ring.mark();
    for (uint64_t i = 0; i < 10; ++i) ring.Fault(0x1000 * i, size);
    std::array<uint64_t, 4> few{};
    FaultTally tally = TallyFaults(ring.view(), from, few);
    CHECK(tally.faults == 10);
    CHECK(tally.addresses == 4);
    CHECK(few == std::array<uint64_t, 4>{0, 0x1000, 0x2000, 0x3000});
    CHECK(!tally.at_least);
    std::array<uint64_t, 16> many{};
    CHECK(TallyFaults(ring.view(), from, many).addresses == 10);
    CHECK((many[0] == 0 && many[1] == 0x1000 && many[9] == 0x9000));
    for (uint64_t i = 10; i < 100; ++i) ring.Fault(0x1000 * i, size);
    tally = TallyFaults(ring.view(), from, few);
    CHECK(tally.faults == 100);
    CHECK(tally.at_least);
    CHECK(few[0] == 0x1000 * (100 - ring.bytes().size() / size));
    CHECK(few[3] == few[0] + 0x3000);
  }
}

// Stacks that others ask for make records larger than the whole ring.
TEST_CASE("faults: their number does not depend on the size of records") {
  MadeUpFaults ring(16, uint64_t{0} - 4096);
  const FaultMark from = ring.mark();
  for (uint64_t i = 0; i < 50; ++i) ring.Fault(0x1000 * i, i % 7 == 0 ? 65528 : 40 + 8 * (i % 5));
  std::array<uint64_t, 4> few{};
  const FaultTally tally = TallyFaults(ring.view(), from, few);
  CHECK(tally.faults == 50);
  CHECK(tally.at_least);
}

TEST_CASE("rings: bytes that are not what they should be are counted out, never followed") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    MadeUpRing ring(32);
    for (std::byte& byte : ring.bytes()) byte = static_cast<std::byte>(random());
    const uint64_t from = ring.head();
    for (int i = 0; i < 20; ++i)
      ring.Append(random(), random(), random(), random(), random() % 2 ? 32 : random() % 65536);
    MadeUpFaults faults(32);
    for (std::byte& byte : faults.bytes()) byte = static_cast<std::byte>(random());
    const FaultMark none = faults.mark();
    for (int i = 0; i < 20; ++i) faults.Append(random(), random(), random() % 2 ? 40 : 8 * (random() % 4096));
    std::array<uint64_t, 16> addresses;
    CHECK(TallyFaults(faults.view(), none, addresses).addresses <= 16);
    const SwitchTally tally = TallySwitches(ring.view(), from);
    CHECK(tally.preemptions + tally.waits <= 10);
  }
  MadeUpRing ring(32);
  ring.Switch(true, false, 100, 0);
  ring.Append(sys::kRecordSwitch, 0, 300, 0, 24);
  ring.Switch(false, false, 500, 0);
  CHECK(TallySwitches(ring.view(), 0).at_least);
}

MadeUpFaults* storm_ring = nullptr;

// Overwrites the whole ring.
void FaultALap() {
  for (int i = 0; i < 27; ++i) storm_ring->Fault(storm_ring->count());
}

TEST_CASE("rings: a record that is overwritten while it is read is not believed", "[law]") {
  if (testing::kHandlersUnseen) SKIP_TEST("ThreadSanitizer does not see handlers");
  constexpr uint64_t kRecords = 16;
  MadeUpFaults ring(kRecords);
  storm_ring = &ring;
  FaultALap();
  const testing::SignalStorm storm(FaultALap);
  while (storm.handled() < 500) {
    std::array<uint64_t, 2 * kRecords> addresses{};
    const FaultTally tally = TallyFaults(ring.view(), {}, addresses);
    // Addresses are the records' numbers: what one ring holds at one time lies close together.
    for (size_t i = 1; i < tally.addresses; ++i) REQUIRE(addresses[i] > addresses[i - 1]);
    if (tally.addresses > 0) REQUIRE(addresses[tally.addresses - 1] - addresses[0] < 2 * kRecords);
  }
}

}  // namespace
}  // namespace perfkit::count
