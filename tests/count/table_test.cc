// The table of counts, line by line.
#include "src/count/table.h"

#include <catch2/catch.hpp>
#include <vector>

#include "perfkit/format.h"

namespace perfkit::count {
namespace {

Count Counted(uint64_t value, uint8_t flags = 0) { return {value, 0, 0, {flags}}; }

TEST_CASE("format: thousands") {
  CHECK(FormatNumber(0) == "0");
  CHECK(FormatNumber(999) == "999");
  CHECK(FormatNumber(1000) == "1,000");
  CHECK(FormatNumber(1234567) == "1,234,567");
  CHECK(FormatNumber(~uint64_t{0}) == "18,446,744,073,709,551,615");
}

TEST_CASE("format: values, metrics, coverage, reasons") {
  const std::vector<TableRow> rows = {
      {"task-clock", Counted(22'156'000), "ns", 1, ""},
      {"cycles", {30'000'000, 100, 50, {Validity::kMultiplexed}}, "", 1, ""},
      {"page-faults", Counted(12, Validity::kUserOnly), "", 1, ""},
      {"instructions", Count{}, "", 1, "no hardware counters on this machine"},
      {"energy-pkg", Counted(1000), "Joules", 0.25, ""},
  };
  CHECK(FormatRows(rows, 0) ==
        "  22,156,000 ns      task-clock\n"
        "  60,000,000         cycles            # 2.71 GHz  (50 % coverage, scaled)\n"
        "          12         page-faults       #           (user space only)\n"
        "         n/a         instructions      # no hardware counters on this machine\n"
        "      250.00 Joules  energy-pkg\n");
}

TEST_CASE("format: no number is never a 0") {
  const Count stray{0, 0, 0, {Validity::kOtherThread}};
  const Count starved{0, 100, 0, {Validity::kMultiplexed}};
  const std::vector<TableRow> rows = {{"a", stray, "", 1, ""}, {"b", starved, "", 1, ""}, {"c", Count{}, "", 1, ""}};
  const std::string text = FormatRows(rows, 1000);
  CHECK(text ==
        "         n/a   a                 # was read on another thread than it counts (ThreadSlots counts each)\n"
        "         n/a   b                 # never was on a counter\n"
        "         n/a   c                 # not counted\n");
}

TEST_CASE("format: a hostile name stays one line and does not push the table away") {
  const std::vector<TableRow> rows = {{"short", Counted(1), "", 1, ""}};
  const std::string long_name(1000, 'x');
  const std::vector<TableRow> both = {rows[0], {long_name, Counted(2), "", 1, ""}};
  const std::string text = FormatRows(both, 0);
  CHECK(text.substr(0, text.find('\n')) == "           1   short");
}

TEST_CASE("format: a note ends its line") {
  const std::vector<TableRow> rows = {
      {.name = "page-faults", .count = Counted(12, Validity::kUserOnly), .note = "+- 0.5 %"},
      {.name = "dummy", .count = Counted(0), .note = "+- 0 %"}};
  CHECK(FormatRows(rows, 0) ==
        "          12   page-faults       # (user space only)  (+- 0.5 %)\n"
        "           0   dummy             (+- 0 %)\n");
}

TEST_CASE("format: metrics have lines of their own", "[metric]") {
  const auto metric = [](std::string_view text) { return *Metric::Parse(text); };
  const std::vector<TableRow> rows = {{"page-faults", Counted(12, Validity::kUserOnly), "", 1, ""},
                                      {"instructions:u", {30'000, 100, 50, {Validity::kMultiplexed}}, "", 1, ""},
                                      {"cycles", Count{}, "", 1, "no hardware counters on this machine"}};
  const std::vector<Metric> metrics = {metric("fault-rate = page-faults / seconds [/s]"),
                                       metric("1000 * page-faults / instructions:u [faults/1000 insn]"),
                                       metric("ipc = instructions:u / cycles [insn/cycle]"),
                                       metric("page-faults / 5000")};
  CHECK(FormatRows(rows, 4'000'000, metrics) ==
        "          12                   page-faults                          # 3.00 K/s   (user space only)\n"
        "      60,000                   instructions:u                       # 15.00 M/s  (50 % coverage, scaled)\n"
        "         n/a                   cycles                               # no hardware counters on this machine\n"
        "    3.00 K/s                   fault-rate                           #            (user space only)\n"
        "        0.20 faults/1000 insn  1000 * page-faults / instructions:u  #            (50 % coverage, scaled; user "
        "space only)\n"
        "         n/a insn/cycle        ipc                                  # cycles: no hardware counters on this "
        "machine\n"
        "      0.0024                   page-faults / 5000                   #            (user space only)\n");
}

TEST_CASE("format: an empty table is empty") { CHECK(FormatRows({}, 0).empty()); }

}  // namespace
}  // namespace perfkit::count
