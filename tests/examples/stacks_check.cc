// Runs stacks, and reads its two reports.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "tests/examples/report_text.h"
#include "tests/support/run.h"

namespace {

using perfkit::testing::ReportText;
using perfkit::testing::Run;
using perfkit::testing::RunCommand;

bool Calls(const ReportText& report, const std::string& function) {
  return std::any_of(report.calls().begin(), report.calls().end(),
                     [&](const ReportText::Call& call) { return call.name.find(function) != std::string::npos; });
}

TEST_CASE("stacks of SQLite are whole, live and dumped", "[stacks]") {
  const Run run = RunCommand("timeout 100 " STACKS " 2");
  INFO(run.output);
  REQUIRE(run.exit_code == 0);
  const size_t second = run.output.find("\ndumped stacks\n");
  REQUIRE(second != run.output.npos);
  const ReportText live(run.output.substr(0, second)), dumped(run.output.substr(second));
  for (const char* function : {"RunQueries", "sqlite3_exec", "sqlite3_step"}) {
    INFO(function);
    CHECK(Calls(live, function));
  }
  CHECK(live.head().find("# stacks: live\n") != std::string::npos);
  CHECK(dumped.head().find("# stacks: dumps\n") != std::string::npos);
  for (const ReportText* report : {&live, &dumped}) {
    CHECK(report->samples() > 0);
    CHECK(report->QualityShare("whole") >= 19 * report->QualityShare("part"));
  }
  CHECK(dumped.QualityShare("whole") >= 95);  // each sample has its dump; a live stack may be skipped
}

}  // namespace
