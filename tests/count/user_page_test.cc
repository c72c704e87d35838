// The user page: sign extension, the seqlock under a writer that never rests, times, and what is refused.
#include "perfkit/detail/user_page.h"

#include <catch2/catch.hpp>

namespace perfkit {
namespace {

TEST_CASE("sign extension keeps the low bits and repeats the highest", "[user_page]") {
  STATIC_REQUIRE(SignExtend(0xdead, 0) == 0);
  STATIC_REQUIRE(SignExtend(0x80000000, 32) == -0x80000000LL);
  STATIC_REQUIRE(SignExtend(0x7fffffff, 32) == 0x7fffffff);
  STATIC_REQUIRE(SignExtend(0xffff'ffff'ffff, 48) == -1);
  STATIC_REQUIRE(SignExtend(0x1'0000'0000'0005, 48) == 5);
  STATIC_REQUIRE(SignExtend(~0ull, 64) == -1);
  STATIC_REQUIRE(SignExtend(~0ull >> 1, 200) == INT64_MAX);
}

constexpr uint64_t kCanRead = 1 << 2;
constexpr uint64_t kHasTime = 1 << 3;

UserPage PageWithCounter(uint32_t index, uint16_t width) {
  UserPage page{};
  page.lock = 2;
  page.index = index;
  page.pmc_width = width;
  page.capabilities = kCanRead;
  return page;
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
      {0, 9, 1234, 9},
  };
  for (const Case& c : kCases) {
    UserPage page = PageWithCounter(3, c.width);
    page.offset = c.offset;
    UserCount count;
    uint32_t asked = 0;
    REQUIRE(ReadUserCount(page, count, [&](uint32_t n) { return asked = n, c.raw; }));
    CHECK(asked == 2);
    CHECK(count.value == c.value);
  }
}

TEST_CASE("fixed counters keep bit 30 in the register number", "[user_page]") {
  const UserPage page = PageWithCounter((1u << 30) + 1, 48);
  UserCount count;
  uint32_t asked = 0;
  REQUIRE(ReadUserCount(page, count, [&](uint32_t n) { return asked = n, uint64_t{0}; }));
  CHECK(asked == 1u << 30);
}

TEST_CASE("what is not on a counter, or may not be read, has no user count", "[user_page]") {
  UserCount count;
  const auto never = [](uint32_t) -> uint64_t {
    FAIL("touched a register");
    return 0;
  };
  UserPage page = PageWithCounter(0, 48);
  CHECK_FALSE(ReadUserCount(page, count, never));
  page = PageWithCounter(1, 48);
  page.capabilities = 0;
  CHECK_FALSE(ReadUserCount(page, count, never));
}

TEST_CASE("a reading torn by the kernel is taken again, and given up after a bound", "[user_page]") {
  UserPage page = PageWithCounter(1, 48);
  UserCount count;
  int reads = 0;
  const auto tear_twice = [&](uint32_t) -> uint64_t {
    if (++reads <= 2) {
      page.lock += 2;
      page.offset += 100;  // the kernel folded the register into the offset
    }
    return 1;
  };
  REQUIRE(ReadUserCount(page, count, tear_twice));
  CHECK(reads == 3);
  CHECK(count.value == 201);
  CHECK_FALSE(ReadUserCount(page, count, [&](uint32_t) -> uint64_t { return page.lock += 2; }));
}

TEST_CASE("times advance by the page's own conversion", "[user_page]") {
  UserPage page = PageWithCounter(1, 48);
  page.capabilities = kCanRead | kHasTime;
  page.time_shift = 10;
  page.time_mult = 512;  // half a nanosecond a tick
  CHECK(NsSinceUpdate(page, 0) == 0);
  CHECK(NsSinceUpdate(page, 4096) == 2048);
  CHECK(NsSinceUpdate(page, 4098) == 2049);
  page.time_offset = static_cast<uint64_t>(-48);
  CHECK(NsSinceUpdate(page, 4096) == 2000);
  page.capabilities |= 1 << 5;  // cap_user_time_short
  page.time_cycles = 4000;
  page.time_mask = 0xff;
  CHECK(NsSinceUpdate(page, 4096 + (1 << 20)) == 2000);
  page.capabilities = kCanRead;
  CHECK(NsSinceUpdate(page, 4096) == 0);
}

}  // namespace
}  // namespace perfkit
