// The language of metrics: what is a name, what is an operator, and what is said of mistakes.
#include "src/count/metric/parser.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "perfkit/metric.h"
#include "tests/support/event_roots.h"

namespace perfkit {
namespace {

Metric Parsed(std::string_view text, const std::string& machine = "intel_alderlake") {
  const absl::StatusOr<Metric> metric = Metric::Parse(text, testing::GoldenRoots(machine));
  INFO(std::string(text) << ": " << metric.status().ToString());
  REQUIRE(metric.ok());
  return *metric;
}

std::string ErrorOf(std::string_view text, const EventRoots& roots = testing::VmRoots()) {
  const absl::StatusOr<Metric> metric = Metric::Parse(text, roots);
  if (metric.ok()) return "parsed";
  CHECK(absl::IsInvalidArgument(metric.status()));
  return std::string(metric.status().message());
}

std::vector<std::string> Events(std::string_view text) {
  const auto accept = [](std::string_view) { return absl::OkStatus(); };
  const absl::StatusOr<Metric> metric = count::MetricParser(text, accept).Parse();
  INFO(std::string(text) << ": " << metric.status().ToString());
  REQUIRE(metric.ok());
  return metric->events();
}

TEST_CASE("metric language: a name, a sum and a unit", "[metric]") {
  const Metric metric = Parsed("  mpki = 1000*LLC-load-misses/instructions [misses/1000 insn] ");
  CHECK(metric.text() == "mpki = 1000*LLC-load-misses/instructions [misses/1000 insn]");
  CHECK(metric.name() == "mpki");
  CHECK(metric.unit() == "misses/1000 insn");
  CHECK(metric.events() == std::vector<std::string>{"LLC-load-misses", "instructions"});
  CHECK_FALSE(metric.needs_elapsed_time());

  const Metric plain = Parsed("page-faults / seconds[/s]");
  CHECK(plain.name() == "page-faults / seconds");
  CHECK(plain.unit() == "/s");
  CHECK(plain.events() == std::vector<std::string>{"page-faults"});
  CHECK(plain.needs_elapsed_time());
}

TEST_CASE("metric language: an event is the longest text that can be one", "[metric]") {
  using Names = std::vector<std::string>;
  CHECK(Events("a-b") == Names{"a-b"});
  CHECK(Events("a - b") == Names{"a", "b"});
  CHECK(Events("a -b") == Names{"a", "b"});
  CHECK(Events("2-b") == Names{"b"});
  CHECK(Events("a+b*c") == Names{"a", "b", "c"});
  CHECK(Events("a/b") == Names{"a", "b"});
  CHECK(Events("a/b/c") == Names{"a", "b", "c"});
  CHECK(Events("a/b/(c+d)") == Names{"a", "b", "c", "d"});
  CHECK(Events("a/b/2") == Names{"a", "b"});
  CHECK(Events("cycles:u/instructions:u/page-faults") == Names{"cycles:u", "instructions:u", "page-faults"});
  CHECK(Events("sched:sched_switch/task-clock") == Names{"sched:sched_switch", "task-clock"});

  CHECK(Events("cpu/slots/ / 2") == Names{"cpu/slots/"});
  CHECK(Events("cpu/slots/*2") == Names{"cpu/slots/"});
  CHECK(Events("cpu/slots/u / cpu/slots/") == Names{"cpu/slots/u", "cpu/slots/"});
  CHECK(Events("cpu/event=0x3c,umask=0x1/upp/cycles") == Names{"cpu/event=0x3c,umask=0x1/upp", "cycles"});
  CHECK(Events("cpu/event=0x3c/:k - b") == Names{"cpu/event=0x3c/:k", "b"});
  CHECK(Events("cpu/event=1,name='a / b'/ + 1") == Names{"cpu/event=1,name='a / b'/"});
  CHECK(Events("(mem:0x601040/8:rw) / b") == Names{"mem:0x601040/8:rw", "b"});
  CHECK(Events("uprobe:/lib/x.so+0x1234 / uretprobe:/lib/x-1.so:f") ==
        Names{"uprobe:/lib/x.so+0x1234", "uretprobe:/lib/x-1.so:f"});
}

TEST_CASE("metric language: events are asked for once", "[metric]") {
  CHECK(Events("a / (a + b) * b").size() == 2);
  CHECK(Parsed("allocations / page-faults").events().size() == 2);
  CHECK(Parsed("system-calls / task-clock").events().size() == 2);
}

TEST_CASE("metric language: mistakes are told with their position", "[metric]") {
  CHECK(ErrorOf("") == "metric '', character 1: expected a number, an event or '(', not the end");
  CHECK(ErrorOf("1000 * / cycles") ==
        "metric '1000 * / cycles', character 8: expected a number, an event or '(', not '/'");
  CHECK(ErrorOf("(cycles + 1") ==
        "metric '(cycles + 1', character 12: expected an operator (+ - * /) or ')', not the end");
  CHECK(ErrorOf("cycles instructions") ==
        "metric 'cycles instructions', character 8: expected an operator (+ - * /), a [unit] or the end, not "
        "'instructions'");
  CHECK(ErrorOf("cycles)") ==
        "metric 'cycles)', character 7: expected an operator (+ - * /), a [unit] or the end, not ')'");
  CHECK(ErrorOf("cycles [GHz") == "metric 'cycles [GHz', character 8: a '[' without its ']'");
  CHECK(ErrorOf("cycles [GHz] 2") == "metric 'cycles [GHz] 2', character 14: expected the end, not '2'");
  CHECK(ErrorOf("cycles % 2") ==
        "metric 'cycles % 2', character 8: expected an operator (+ - * /), a [unit] or the end, not '%'");
  CHECK(ErrorOf("2x / cycles") == "metric '2x / cycles', character 1: expected a number, an event or '(', not '2x'");
  CHECK(ErrorOf("1:2 / cycles") == "metric '1:2 / cycles', character 1: expected a number, an event or '(', not '1:2'");
  CHECK(ErrorOf("1 + 2") == "metric '1 + 2', character 1: names no event");
  CHECK(ErrorOf("x = (y = cycles)").find("character 6: event 'y': no event or PMU is called 'y'") != std::string::npos);
  CHECK(ErrorOf("cost per 2 faults = task-clock / page-faults") ==
        "metric 'cost per 2 faults = task-clock / page-faults', character 1: a metric's name is one word: "
        "'cost_per_2_faults = ...'");
  CHECK(ErrorOf("cycles [a b = c]") == "parsed");
  CHECK(ErrorOf("x = cycles = 1") ==
        "metric 'x = cycles = 1', character 12: expected an operator (+ - * /), a [unit] or the end, not '='");
}

TEST_CASE("metric language: an unknown event is told with the nearest names", "[metric]") {
  CHECK(ErrorOf("1000 * page-fualts / task-clock") ==
        "metric '1000 * page-fualts / task-clock', character 8: event 'page-fualts': no event or PMU is called "
        "'page-fualts'; did you mean 'page-faults'? (perf list shows them); a '-' without blanks "
        "around it is part of a name");
  CHECK(ErrorOf("cycles/name=x/ / 2").find("character 1: event 'cycles/name=x/'") == std::string::npos);
  CHECK(ErrorOf("cycles:q / 2").find("character 1: event 'cycles:q', character 8: 'q' is no modifier") !=
        std::string::npos);
}

TEST_CASE("metric language: what this machine lacks is no mistake", "[metric]") {
  CHECK(ErrorOf("instructions / cycles") == "parsed");
  CHECK(ErrorOf("sched:sched_switch / task-clock") == "parsed");
}

TEST_CASE("metric language: length and depth are bounded", "[metric]") {
  std::string nested = "cycles";
  nested.insert(0, 60, '(').append(60, ')');
  CHECK(ErrorOf(nested) == "parsed");
  CHECK(ErrorOf(std::string(100'000, '(')).find("longer than any metric") != std::string::npos);
  CHECK(ErrorOf(std::string(4000, '(')).find("character 65: more than 64 parentheses deep") != std::string::npos);
  CHECK(ErrorOf(std::string("cycles\0", 7)).find("character 7") != std::string::npos);
}

}  // namespace
}  // namespace perfkit
