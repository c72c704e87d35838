// Counter registers read in user space: widths, laps, agreement with the kernel, and what happens without them.
#include <catch2/catch.hpp>
#include <optional>

#include "tests/pmu/pages.h"

namespace perfkit {
namespace {

using testing::ByKernel;
using testing::ByRegister;
using testing::Compare;
using testing::Disagreements;
using testing::kLoopInstructions;
using testing::Loop;
using testing::OpenPage;

// A counter, and the one of cycles; where that one may have 64 bits, with these as well.
#if defined(__aarch64__)
constexpr std::string_view kAllWidths[] = {"instructions:u", "cycles:u", "armv8_pmuv3/cpu_cycles,long=1/u"};
#else
constexpr std::string_view kAllWidths[] = {"instructions:u", "cycles:u"};
#endif

TEST_CASE("registers and read(2) agree, 100,000 times", "[exact]") {
  NEED_USER_READS();
#if defined(__aarch64__)
  for (const char* const event : {"armv8_pmuv3/inst_retired,rdpmc=1/u", "armv8_pmuv3/cpu_cycles,rdpmc=1/u",
                                  "armv8_pmuv3/cpu_cycles,rdpmc=1,long=1/u"}) {
    CAPTURE(event);
    const open::LiveRing ring = OpenPage(event);
    const Disagreements found = Compare(ring, 35'000, 10);
    CHECK(found.wrong == 0);
    CHECK(found.unreadable == 0);
  }
#endif
}

#if defined(__aarch64__)
// drivers/perf/arm_pmuv3.c: the cycle counter is register 31, so that its index in the page is 32.
constexpr uint32_t kCycleIndex = 32;

TEST_CASE("a register has the width that was asked for", "[exact]") {
  NEED_USER_READS();
  const open::LiveRing narrow = OpenPage("armv8_pmuv3/cpu_cycles,rdpmc=1/u");
  CHECK(narrow.page()->index == kCycleIndex);
  CHECK(narrow.page()->pmc_width == 32);
  const open::LiveRing counter = OpenPage("armv8_pmuv3/inst_retired,rdpmc=1/u");
  CHECK(counter.page()->index > 0);
  CHECK(counter.page()->index < kCycleIndex);
  CHECK(counter.page()->pmc_width == 32);
}

TEST_CASE("the long cycle counter has 64 bits", "[exact]") {
  NEED_USER_READS();
  const open::LiveRing wide = OpenPage("armv8_pmuv3/cpu_cycles,rdpmc=1,long=1/u");
  CHECK(wide.page()->index == kCycleIndex);
  CHECK(wide.page()->pmc_width == 64);
}

TEST_CASE("an event that does not ask gets no register", "[exact]") {
  NEED_USER_READS();
  const open::LiveRing ring = OpenPage("armv8_pmuv3/cpu_cycles/u");
  CHECK_FALSE(ring.page()->can_read_counter());
  CHECK_FALSE(ByRegister(ring).has_value());
}

// With 64 cycles an instruction, 2^32 are soon over. Two events of cycles: one has the cycle counter, one a
// programmable counter. At first both are read as 32 bits, so that the kernel has to add up their laps; then one
// has 64.
TEST_CASE("32-bit registers go round at 2^32, 64-bit ones do not, and nothing is lost or gained", "[sampling]") {
  NEED_USER_READS();
  for (const std::string width : {"", ",long=1"}) {
    const open::LiveRing cycles = OpenPage("armv8_pmuv3/cpu_cycles,rdpmc=1" + width + "/u");
    const open::LiveRing other = OpenPage("armv8_pmuv3/cpu_cycles,rdpmc=1/u");
    REQUIRE(cycles.page()->index == kCycleIndex);
    REQUIRE(other.page()->index != kCycleIndex);
    const uint64_t per = testing::CyclesPerInstruction();
    constexpr uint64_t kSlice = 1'000'000;  // rounds
    const std::optional<uint64_t> start = ByRegister(cycles), start_other = ByRegister(other);
    REQUIRE((start && start_other));
    uint64_t rounds = 0;
    while (rounds * kLoopInstructions * per < (uint64_t{1} << 32) + (uint64_t{1} << 30)) {
      Loop(kSlice);
      rounds += kSlice;
      const Disagreements found = Compare(cycles, 10, 10), found_other = Compare(other, 10, 10);
      CHECK(found.wrong + found.unreadable + found_other.wrong + found_other.unreadable == 0);
      const auto truth = static_cast<double>(rounds * kLoopInstructions * per);
      // The comparisons cost something, too.
      CHECK(static_cast<double>(*ByRegister(cycles) - *start) == Approx(truth).epsilon(0.02));
      CHECK(static_cast<double>(*ByRegister(other) - *start_other) == Approx(truth).epsilon(0.02));
    }
  }
}
#endif

TEST_CASE("a register is cheaper than a read by far", "[exact]") {
  NEED_USER_READS();
  const auto cost = [](std::string_view event, ReadPath path) {
    const CounterSet set = MustOpen(std::array{EventSpec(event)}, Only(path));
    REQUIRE(set.path(0) == path);
    Snapshot now;
    set.Read(now);
    uint64_t best = ~uint64_t{0};
    for (int i = 0; i < 20; ++i) {
      const uint64_t start = ReadTicks();
      for (int k = 0; k < 100; ++k) set.Read(now);
      best = std::min(best, ReadTicks() - start);
    }
    return static_cast<double>(best);
  };
  for (const std::string_view event : kAllWidths) {
    const double ratio = cost(event, ReadPath::kGroupRead) / cost(event, ReadPath::kUserPage);
    printf("%.*s: a read(2) takes as many instructions as %.1f reads of a register\n", static_cast<int>(event.size()),
           event.data(), ratio);
    CHECK(ratio > 3);
  }
}

TEST_CASE("a set that dies leaves the registers of others alone", "[exact]") {
  NEED_USER_READS();
  const CounterSet kept = MustOpen(std::array{EventSpec("instructions:u")}, Only(ReadPath::kUserPage));
  for (int i = 0; i < 20; ++i) {
    {
      const CounterSet passing = MustOpen(std::array{EventSpec("cycles:u")}, Only(ReadPath::kUserPage));
      REQUIRE(passing.path(0) == ReadPath::kUserPage);
    }
    Snapshot begin, end;
    kept.Read(begin);
    Loop(100);
    kept.Read(end);
    const Count count = kept.Difference(begin, end, 0);
    CHECK(count.validity.counted());
    CHECK_FALSE(count.validity.has(Validity::kFallback));
    CHECK(count.value >= 100 * kLoopInstructions);
    CHECK(count.value < 100 * kLoopInstructions + 4000);
  }
}

// Puts the switch of the whole machine back when it dies.
class UserAccess {
 public:
  explicit UserAccess(const char* value) : works_(Write(value)) {}
  ~UserAccess() { Write("1"); }
  bool works() const { return works_; }

 private:
  static bool Write(const char* value) {
    FILE* const file = fopen("/proc/sys/kernel/perf_user_access", "w");
    if (file == nullptr) return false;
    const bool written = fputs(value, file) >= 0;
    return fclose(file) == 0 && written;
  }
  bool works_;
};

TEST_CASE("where user space may not read registers, the kernel is asked", "[exact]") {
  NEED_USER_READS();
#if defined(__aarch64__)
  if (geteuid() != 0) SKIP_TEST("needs root to set kernel.perf_user_access");
  const UserAccess off("0");
  REQUIRE(off.works());
  const CounterSet set = MustOpen(std::array{EventSpec("instructions:u")});
  CHECK(set.path(0) == ReadPath::kGroupRead);
  CHECK(absl::IsUnavailable(
      CounterSet::Open({"instructions:u"}, Target::ThisThread(), Only(ReadPath::kUserPage)).status()));
  Snapshot begin, end;
  set.Read(begin);
  Loop(1000);
  set.Read(end);
  CHECK(set.Difference(begin, end, 0).value >= 1000 * kLoopInstructions);
  CHECK(set.Difference(begin, end, 0).value < 1000 * kLoopInstructions + 1000);
#endif
}

}  // namespace
}  // namespace perfkit
