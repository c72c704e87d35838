// The user page: registers of every width, the laps of a counter, times, and what is refused.
#include "perfkit/detail/user_page.h"

#include <linux/perf_event.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "tests/count/fake_page.h"

namespace perfkit {
namespace {

using testing::PageWithCounter;
using testing::ReadWith;

TEST_CASE("sign extension keeps the low bits and repeats the highest", "[user_page]") {
  STATIC_REQUIRE(SignExtend(0xdead, 0) == 0);
  STATIC_REQUIRE(SignExtend(0x80000000, 32) == -0x80000000LL);
  STATIC_REQUIRE(SignExtend(0x7fffffff, 32) == 0x7fffffff);
  STATIC_REQUIRE(SignExtend(0xffff'ffff'ffff, 48) == -1);
  STATIC_REQUIRE(SignExtend(0x1'0000'0000'0005, 48) == 5);
  STATIC_REQUIRE(SignExtend(~0ull, 64) == -1);
  STATIC_REQUIRE(SignExtend(~0ull >> 1, 200) == INT64_MAX);
}

// What two's complement says, by plain arithmetic in numbers that are wide enough.
int64_t ByArithmetic(uint64_t value, unsigned width) {
  __extension__ using Wide = __int128;
  const Wide lap = Wide{1} << width;
  const Wide rest = Wide{value} % lap;
  return static_cast<int64_t>(rest < lap / 2 ? rest : rest - lap);
}

TEST_CASE("sign extension holds for every width, at its edges and beyond", "[user_page]") {
  for (unsigned width = 1; width <= 64; ++width) {
    CAPTURE(width);
    const uint64_t half = uint64_t{1} << (width - 1), all = half | (half - 1);
    for (const uint64_t low : {uint64_t{0}, uint64_t{1}, half - 1, half, half + 1, all - 1, all}) {
      CHECK(SignExtend(low & all, width) == ByArithmetic(low & all, width));
      CHECK(SignExtend(low | ~all, width) == ByArithmetic(low & all, width));  // what lies above does not count
    }
    CHECK(SignExtend(half, width) < 0);
    CHECK(SignExtend(half - 1, width) >= 0);
    CHECK(SignExtend(all, width) == -1);
  }
}

TEST_CASE("a user count is the offset plus the sign-extended register", "[user_page]") {
  struct Case {
    uint16_t width;
    int64_t offset;
    uint64_t raw;
    uint64_t value;
  };
  const Case kCases[] = {
      {48, 1000, 5, 1005},
      {48, 1'000'000, 0xffff'ffff'fff0, 1'000'000 - 16},  // counts up from a negative start
      {32, 0x8000'0000, 0x8000'0001, 1},
      {64, 7, 35, 42},
      {64, -7, 35, 28},
      {48, -1, 0, ~0ull},  // an event whose count went round at 2^64
      {0, 9, 1234, 9},
  };
  for (const Case& c : kCases) {
    UserPage page = PageWithCounter(3, c.width);
    page.offset = c.offset;
    UserCount count;
    uint32_t asked = 0;
    REQUIRE(ReadWith(page, count, [&](uint32_t n) { return asked = n, c.raw; }));
    CHECK(asked == 2);
    CHECK(count.value == c.value);
  }
}

// One counter and its page in the hands of a kernel: it starts half a lap below 0, is added up when it overflows, and
// its page written (x86_perf_event_set_period, x86_perf_event_update, perf_event_update_userpage).
class CounterModel {
 public:
  CounterModel(unsigned width, uint64_t before) : page_(PageWithCounter(1, static_cast<uint16_t>(width))) {
    all_ = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
    sum_ = truth_ = before;
    Start();
  }

  const UserPage& page() const { return page_; }
  uint64_t truth() const { return truth_; }
  uint64_t raw() const { return raw_; }
  uint64_t to_overflow() const { return (0 - raw_) & all_; }

  void Count(uint64_t events) {
    raw_ = (raw_ + events) & all_;
    truth_ += events;
  }

  void TakeOverflow() {
    sum_ += (raw_ - start_) & all_;
    Start();
  }

 private:
  void Start() {
    start_ = 0 - (all_ / 2 + 1);
    raw_ = start_ & all_;
    page_.offset = static_cast<int64_t>(sum_ - start_);
    page_.lock += 2;
  }

  UserPage page_;
  uint64_t all_, sum_, truth_, start_ = 0, raw_ = 0;
};

TEST_CASE("laps of registers of every width are neither lost nor counted twice", "[user_page]") {
  for (unsigned width = 1; width <= 64; ++width) {
    for (const uint64_t before : {uint64_t{0}, uint64_t{1} << 32, ~uint64_t{0} - 3}) {
      CAPTURE(width, before);
      CounterModel model(width, before);
      const auto read = [&] {
        UserCount count;
        REQUIRE(ReadWith(model.page(), count, [&](uint32_t n) { return n == 0 ? model.raw() : 0xbad; }));
        return count.value;
      };
      const uint64_t half = uint64_t{1} << (width - 1);
      for (int lap = 0; lap < 3; ++lap) {
        CHECK(read() == model.truth());
        model.Count(half / 2);
        CHECK(read() == model.truth());
        model.Count(model.to_overflow() - 1);  // the last number below 0
        CHECK(read() == model.truth());
        if (width > 1) model.Count(1);  // over, and the kernel does not know yet
        CHECK(read() == model.truth());
        model.Count(half - 1);  // as long as that may take
        CHECK(read() == model.truth());
        model.TakeOverflow();
      }
    }
  }
}

TEST_CASE("every register number reaches the machine as the page has it, less one", "[user_page]") {
  // x86: fixed counters carry bit 30, metrics bit 29. arm64: the cycle counter is 31.
  for (const uint32_t n : {0u, 1u, 7u, 31u, 1u << 29, 1u << 30, (1u << 30) + 3, 0xffff'fffeu}) {
    const UserPage page = PageWithCounter(n + 1, 48);
    UserCount count;
    uint32_t asked = ~0u;
    REQUIRE(ReadWith(page, count, [&](uint32_t m) { return asked = m, uint64_t{0}; }));
    CHECK(asked == n);
  }
}

TEST_CASE("what is not on a counter, or may not be read, has no user count", "[user_page]") {
  UserCount count;
  int touched = 0;
  const auto never = [&](uint32_t) { return ++touched, uint64_t{0}; };
  UserPage page = PageWithCounter(0, 48);
  CHECK_FALSE(ReadWith(page, count, never));
  page = PageWithCounter(1, 48);
  page.capabilities = ~UserPage::kCanReadCounter;  // times and all: but no register
  CHECK_FALSE(ReadWith(page, count, never));
  page.capabilities = 0;
  CHECK_FALSE(ReadWith(page, count, never));
  CHECK(touched == 0);
}

struct NoRegisters : PageAccess {
  static constexpr bool kHasRegisters = false;
};

TEST_CASE("where there is no instruction for it, no page makes a register readable", "[user_page]") {
  UserCount count;
  CHECK_FALSE(ReadUserCount(PageWithCounter(1, 64), count, NoRegisters{}));
}

// The conversion of a page at `ticks`.
uint64_t NsAt(const UserPage& page, uint64_t ticks) {
  const auto read = [](uint32_t) { return uint64_t{0}; };
  return NsSinceUpdate(page, page.capabilities, testing::FakeMachine<decltype(read)>{{}, read, ticks});
}

TEST_CASE("times advance by the page's own conversion", "[user_page]") {
  UserPage page = PageWithCounter(1, 48);
  page.capabilities |= UserPage::kCanTellTime;
  page.time_shift = 10;
  page.time_mult = 512;  // half a nanosecond a tick
  CHECK(NsAt(page, 0) == 0);
  CHECK(NsAt(page, 4096) == 2048);
  CHECK(NsAt(page, 4098) == 2049);
  page.time_offset = static_cast<uint64_t>(-48);
  CHECK(NsAt(page, 4096) == 2000);
  page.capabilities |= UserPage::kShortTicks;
  page.time_cycles = 4000;
  page.time_mask = 0xff;
  CHECK(NsAt(page, 4096 + (1 << 20)) == 2000);
  page.capabilities = UserPage::kCanReadCounter;
  CHECK(NsAt(page, 4096) == 0);
}

// The uapi header's own words, in 128 bits where it says 64: shifts of more than 32 need them.
uint64_t ByHeader(uint64_t ticks, uint16_t shift, uint32_t mult) {
  __extension__ using Wide = unsigned __int128;
  const Wide quotient = ticks >> shift, rest = ticks & ((Wide{1} << shift) - 1);
  return static_cast<uint64_t>(quotient * mult + ((rest * mult) >> shift));
}

TEST_CASE("the conversion holds at the edges of shift, multiplier and ticks", "[user_page]") {
  UserPage page = PageWithCounter(1, 48);
  page.capabilities |= UserPage::kCanTellTime;
  for (uint16_t shift = 0; shift < 64; ++shift) {
    for (const uint32_t mult : {0u, 1u, 0x7fff'ffffu, 0x8000'0000u, 0xffff'ffffu}) {
      for (const uint64_t ticks : {uint64_t{0}, uint64_t{1}, uint64_t{0xffff'ffff}, uint64_t{1} << 32, ~uint64_t{0}}) {
        CAPTURE(shift, mult, ticks);
        page.time_shift = shift;
        page.time_mult = mult;
        page.time_offset = 0;
        CHECK(NsAt(page, ticks) == ByHeader(ticks, shift, mult));
        page.time_offset = ~uint64_t{0};  // -1: the kernel's are often negative
        CHECK(NsAt(page, ticks) == ByHeader(ticks, shift, mult) - 1);
      }
    }
  }
  page.time_shift = 64 + 3;  // none that a kernel writes; nothing undefined happens
  page.time_mult = 8;
  page.time_offset = 0;
  CHECK(NsAt(page, 5) == 5);
}

TEST_CASE("a tick counter of few bits may have gone round since the page was written", "[user_page]") {
  UserPage page = PageWithCounter(1, 48);
  page.capabilities |= UserPage::kCanTellTime;
  page.time_mult = 1;
  page.time_cycles = 0x1'00ff'ffff'fffe;  // 56 bits are counted: arm64
  page.time_mask = (uint64_t{1} << 56) - 1;
  const uint64_t ticks = 0x00ff'ffff'ffff'ffff & (page.time_cycles + 10);
  CHECK(NsAt(page, ticks) == ticks);
  page.capabilities |= UserPage::kShortTicks;
  CHECK(NsAt(page, ticks) == page.time_cycles + 10);
  page.time_cycles = (uint64_t{5} << 56) - 4;  // the next tick but three takes the lap
  CHECK(NsAt(page, 6) == page.time_cycles + 10);
  CHECK(NsAt(page, (uint64_t{1} << 56) - 4) == page.time_cycles);
}

TEST_CASE("both times of a reading advance by as much", "[user_page]") {
  UserPage page = PageWithCounter(1, 48);
  page.capabilities |= UserPage::kCanTellTime;
  page.time_mult = 1;
  page.time_enabled = 1000;
  page.time_running = 600;
  UserCount count;
  REQUIRE(ReadWith(
      page, count, [](uint32_t) { return uint64_t{0}; }, 50));
  CHECK(count.enabled_ns == 1050);
  CHECK(count.running_ns == 650);
}

// Returns the page that a reader sees if the kernel has written `page`.
UserPage AsUserPage(const perf_event_mmap_page& page) {
  UserPage seen;
  static_assert(sizeof(seen) <= sizeof(page));
  std::memcpy(&seen, &page, sizeof(seen));
  return seen;
}

TEST_CASE("each capability is at the bit of the kernel's header", "[user_page]") {
  const auto bits = [](auto set) {
    perf_event_mmap_page page{};
    set(page);
    return AsUserPage(page).capabilities;
  };
  CHECK(bits([](perf_event_mmap_page& page) { page.cap_user_rdpmc = 1; }) == UserPage::kCanReadCounter);
  CHECK(bits([](perf_event_mmap_page& page) { page.cap_user_time = 1; }) == UserPage::kCanTellTime);
  CHECK(bits([](perf_event_mmap_page& page) { page.cap_user_time_short = 1; }) == UserPage::kShortTicks);
}

TEST_CASE("a page of the kernel's header is read with its own count and times", "[user_page]") {
  perf_event_mmap_page page{};
  page.lock = 2;
  page.index = 8;
  page.offset = 40;
  page.pmc_width = 48;
  page.time_enabled = 1000;
  page.time_running = 600;
  page.cap_user_rdpmc = 1;
  page.time_mult = 3;
  page.time_shift = 1;
  page.time_offset = 5;
  page.time_cycles = 0x100;
  page.time_mask = 0xff;
  const auto read = [&] {
    UserCount count;
    REQUIRE(ReadWith(
        AsUserPage(page), count, [](uint32_t n) { return uint64_t{n == 7 ? 2u : 0xbadu}; }, 10));
    CHECK(count.value == 42);
    return count;
  };
  CHECK(read().enabled_ns == 1000);
  CHECK(read().running_ns == 600);
  page.cap_user_time = 1;
  CHECK(read().enabled_ns == 1000 + 5 + 10 * 3 / 2);
  CHECK(read().running_ns == 600 + 5 + 10 * 3 / 2);
  page.cap_user_time_short = 1;
  CHECK(read().enabled_ns == 1000 + 5 + (0x100 + 10) * 3 / 2);
  CHECK(read().running_ns == 600 + 5 + (0x100 + 10) * 3 / 2);
}

}  // namespace
}  // namespace perfkit
