// Breakpoints that the kernel opens and never counts are refused.
#include "src/open/breakpoint_check.h"

#include <errno.h>

#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_format.h"
#include "perfkit/counter.h"
#include "perfkit/sampler.h"
#include "tests/support/lying_kernel.h"
#include "tests/support/raw_breakpoint.h"
#include "tests/support/skip.h"

namespace perfkit {
namespace {

volatile uint32_t g_watched = 0;

std::string Watched() { return absl::StrFormat("mem:%p/4:w:u", &g_watched); }

TEST_CASE("a breakpoint opens where the kernel counts its own, and is unavailable where it counts none", "[open]") {
  const int64_t raw = testing::RawCountOfWrites();
  if (raw < 0) SKIP_TEST("no breakpoint can be opened here");
  auto counter = Counter::Open(Watched());
  INFO(counter.status().ToString());
  REQUIRE(counter.ok() == (raw > 0));
  if (raw == 0) {
    CHECK(absl::IsUnavailable(counter.status()));
    return;
  }
  for (uint32_t i = 0; i < 64; ++i) g_watched = i;
  Count count;
  REQUIRE(counter->Read(count));
  CHECK(count.value == 64);
}

TEST_CASE("what opens and counts nothing is refused with cause and remedy", "[open]") {
  testing::FakeKernel fake;
  testing::MakeBreakpointsSilent(fake);
  const auto told = [&](const absl::Status& status) {
    const std::string text(status.message());
    INFO(text);
    CHECK(absl::IsUnavailable(status));
    CHECK(text.find("'" + Watched() + "'") != std::string::npos);
    CHECK(text.find("does not count breakpoints") != std::string::npos);
    CHECK(text.find("Remedy: ") != std::string::npos);
  };
  told(Counter::Open(Watched()).status());
  told(Sampler::Open({.events = {{.event = Watched(), .rate = Period{1}}}}).status());
  CHECK(fake.Leaks() == "");
}

TEST_CASE("a breakpoint is not refused because it can't be tried", "[open]") {
  if (testing::RawCountOfWrites() < 0) SKIP_TEST("no breakpoint can be opened here");
  testing::FakeKernel fake;
  fake.FailNth(1, ENOSPC, testing::Call::kPerfEventOpen);
  CHECK(open::CheckBreakpoints("a breakpoint").ok());
  testing::MakeBreakpointsSilent(fake);
  fake.FailNth(1, EINTR, testing::Call::kRead);
  CHECK(open::CheckBreakpoints("a breakpoint").ok());
  CHECK_FALSE(open::CheckBreakpoints("a breakpoint").ok());
  CHECK(fake.Leaks() == "");
}

}  // namespace
}  // namespace perfkit
