// libpfm4's names: another machine's tables, and libpfm4 as an oracle for our own table.
#include "perfkit/pfm.h"

#include <catch2/catch.hpp>
#include <cctype>
#include <cstdlib>
#include <string>

#include "src/event/cache_name.h"
#include "src/event/event_table.h"

namespace perfkit {
namespace {

// Read by libpfm4 when it sets itself up: encode for PMUs that this machine lacks. LIBPFM_FORCE_PMU would hide perf's own
// events in libpfm4 of Debian 13.
absl::StatusOr<EventConfig> Parse(std::string_view text) {
  ::setenv("LIBPFM_ENCODE_INACTIVE", "1", 1);
  return ParsePfmEvent(text);
}

uint64_t ConfigOf(std::string_view text) {
  const absl::StatusOr<EventConfig> event = Parse(text);
  INFO(std::string(text) << ": " << event.status().ToString());
  REQUIRE(event.ok());
  REQUIRE(event->parts.size() == 1);
  return event->parts[0].config;
}

TEST_CASE("libpfm4's names become configs", "[pfm]") {
  // Encodings from Intel's Ice Lake server event list; bits 20 and 22 (int, en) are the kernel's own business.
  constexpr uint64_t kEventAndMask = 0xff00ffff;
  CHECK((ConfigOf("icx::INST_RETIRED:ANY_P") & kEventAndMask) == 0x00c0);
  CHECK((ConfigOf("icx::MEM_LOAD_RETIRED:L3_MISS") & kEventAndMask) == 0x20d1);
  CHECK((ConfigOf("pfm:icx::BR_MISP_RETIRED:ALL_BRANCHES") & kEventAndMask) == 0x00c5);
}

TEST_CASE("modifiers become flags", "[pfm]") {
  const absl::StatusOr<EventConfig> user = Parse("icx::INST_RETIRED:ANY_P:u");
  REQUIRE(user.ok());
  CHECK(user->privilege_given);
  CHECK_FALSE(user->exclude_user);
  CHECK(user->exclude_kernel);
  const absl::StatusOr<EventConfig> all = Parse("icx::INST_RETIRED:ANY_P");
  REQUIRE(all.ok());
  CHECK_FALSE((all->privilege_given || all->exclude_user || all->exclude_kernel));
  CHECK(all->name == "icx::INST_RETIRED:ANY_P");
}

TEST_CASE("what libpfm4 does not know is refused in its words", "[pfm]") {
  CHECK(Parse("icx::NO_SUCH_EVENT").status().message() == "event 'icx::NO_SUCH_EVENT' for libpfm4: event not found");
  CHECK(absl::IsInvalidArgument(Parse("").status()));
  CHECK(absl::IsInvalidArgument(Parse(std::string_view("icx::INST\0X", 11)).status()));
  CHECK(Parse("icx::INST_RETIRED:ANY_P:period=1000").status().message() ==
        "event 'icx::INST_RETIRED:ANY_P:period=1000' for libpfm4: 'period' and 'freq' say how samples are taken, which "
        "is an option of perfkit's sampler");
}

// libpfm4 spells perf's generic events in capitals: "perf::L1-DCACHE-LOAD-MISSES".
std::string InCapitals(std::string_view name) {
  std::string capitals = "perf::";
  for (const char c : name) capitals += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return capitals;
}

TEST_CASE("our table encodes as libpfm4's table of generic events", "[pfm][table]") {
  size_t compared = 0;
  for (const event::TableEvent& ours : event::AllTableEvents()) {
    const absl::StatusOr<EventConfig> theirs = Parse(InCapitals(ours.type.name));
    if (!theirs.ok()) continue;  // libpfm4 has no names for what no CPU counts, such as stores of instruction caches
    INFO(std::string(ours.type.name));
    ++compared;
    CHECK(theirs->parts[0].type == ours.type.type);
    CHECK(theirs->parts[0].config == ours.type.config);
  }
  CHECK(compared >= 40);
}

}  // namespace
}  // namespace perfkit
