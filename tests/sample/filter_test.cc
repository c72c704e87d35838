// Filters: texts get quotes, and a filter that the kernel would refuse without a reason is refused with one.
#include "src/sample/filter.h"

#include "tests/sample/support.h"

namespace perfkit::sample {
namespace {

constexpr std::string_view kFormat = R"(name: sched_switch
ID: 314
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:char prev_comm[16];	offset:8;	size:16;	signed:0;
	field:pid_t prev_pid;	offset:24;	size:4;	signed:1;
	field:int prev_prio;	offset:28;	size:4;	signed:1;

print fmt: "prev_comm=%s", REC->prev_comm
)";

absl::StatusOr<std::string> Check(std::string_view filter) {
  const auto format = TracepointFormat::Parse(kFormat);
  REQUIRE(format.ok());
  return CheckFilter(*format, filter);
}

std::string Passed(std::string_view filter) {
  const auto checked = Check(filter);
  INFO(checked.status());
  REQUIRE(checked.ok());
  return *checked;
}

std::string Refused(std::string_view filter) {
  const auto checked = Check(filter);
  INFO(filter);
  CHECK(absl::IsInvalidArgument(checked.status()));
  return std::string(checked.status().message());
}

bool Has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST_CASE("texts get the quotes that the kernel wants", "[filter]") {
  CHECK(Passed("prev_pid==0") == "prev_pid == 0");
  CHECK(Passed("prev_comm == bash") == "prev_comm == \"bash\"");
  CHECK(Passed("prev_comm ~ 'kworker*'") == "prev_comm ~ \"kworker*\"");
  CHECK(Passed("prev_comm != \"a b\"") == "prev_comm != \"a b\"");
  CHECK(Passed("  !( prev_pid < -1||prev_prio & 0x10 ) && common_pid >= 7 ") ==
        "!(prev_pid < -1 || prev_prio & 0x10) && common_pid >= 7");
}

TEST_CASE("what is wrong is said, with its place and the nearest field", "[filter]") {
  CHECK(Has(Refused("prev_pidd == 0"), "prev_pid"));
  CHECK(Has(Refused("prev_pid == 0 && nonsense == 1"), "character 18"));
  CHECK(Has(Refused("prev_pid"), "comparison is missing"));
  CHECK(Has(Refused("prev_pid == "), "value is missing"));
  CHECK(Has(Refused("prev_pid == bash"), "number"));
  CHECK(Has(Refused("prev_pid == \"7\""), "number"));
  CHECK(Has(Refused("prev_pid ~ 7"), "texts"));
  CHECK(Has(Refused("prev_comm < bash"), "=="));
  CHECK(Has(Refused("prev_comm == \"bash"), "not closed"));
  CHECK(Has(Refused("prev_comm == 'ba\"sh'"), "quote"));
  CHECK(Has(Refused("(prev_pid == 0"), "bracket"));
  CHECK(Has(Refused("prev_pid == 0 prev_prio == 1"), "missing"));
  CHECK(Has(Refused(std::string(100, '(')), "brackets"));
  CHECK(Has(Refused(std::string(5000, ' ')), "exceeds"));
}

TEST_CASE("only tracepoints have filters", "[filter]") {
  SamplerOptions options = testing::FaultOptions();
  options.events[0].filter = "prev_pid == 0";
  const auto sampler = Sampler::Open(options);
  CHECK(absl::IsInvalidArgument(sampler.status()));
  CHECK(Has(std::string(sampler.status().message()), "only tracepoints"));
}

TEST_CASE("branches are named as perf and simpleperf name them", "[filter]") {
  CHECK(BranchFilter::Parse("any,u")->bits == (1 << 3 | 1 << 0));
  CHECK(BranchFilter::Parse("any_call, any_ret,ind_call")->bits == (1 << 4 | 1 << 5 | 1 << 6));
  CHECK(BranchFilter::Parse("k")->bits == (1 << 1 | 1 << 3));  // A privilege level alone means any branch.
  for (const char* wrong : {"", "any,", "sideways"}) {
    const auto parsed = BranchFilter::Parse(wrong);
    CHECK(absl::IsInvalidArgument(parsed.status()));
    CHECK(Has(std::string(parsed.status().message()), "any_call"));
  }
}

}  // namespace
}  // namespace perfkit::sample
