// Metrics as text: numbers that are computed from several counts.
//
//   auto mpki = perfkit::Metric::Parse("mpki = 1000 * LLC-load-misses / instructions [misses/1000 insn]");
//   fputs(perfkit::FormatTable(*set, total, wall_ns, {&*mpki, 1}).c_str(), stdout);
//
// The same text works in FormatTable (format.h), FrameCounter::FormatZones, TaskCounter::FormatTasks, the columns of
// Google Benchmark (benchmark.h) and matchers (testing.h). metric_set.h has sets by name. Metrics cost nothing while
// events are counted: they are evaluated when results are formatted.
//
//   metric   [name =] sum [ [unit] ]      the unit is text for the reader, and does not change the value
//   sum      product, or several with + and - between them
//   product  operand, or several with * and / between them
//   operand  number | event | seconds | duration_time | ( sum )
//
// An event is written as for ParseEvent, in the same spelling as when it was opened; aliases of generic events are
// equivalent. Its value is in its own unit (task-clock: nanoseconds). `seconds` and `duration_time` (perf's name, in
// nanoseconds) are the elapsed time. Events and operators share characters, so an event is the longest text that can be
// one:
//   a-b              one name; write a subtraction with blanks: a - b
//   a/b   a/b/c      divisions; with blanks, too: a / b
//   cpu/event=0x3c/u an event of a PMU. Two slashes enclose terms if '=', ',' or a quote is between them, or if the
//                    second one is followed by modifiers, or not directly by an operand; otherwise they divide
//   mem:… uprobe:…   end at the next blank, parenthesis or bracket; write a division with blanks
// Not accepted: events as numbers of type and config (1:2), and a unary minus. Generic events with terms
// (cycles/name=x/) are parsed, but find no count: such an event is called x. A metric names at least one event, and has
// at most 4,096 characters and 64 nested parentheses.
#pragma once

#include "perfkit/detail/library_only.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "perfkit/count.h"
#include "perfkit/event.h"

namespace perfkit {

namespace count {
class MetricParser;     // src/count/metric/parser.cc
class MetricEvaluator;  // src/count/metric/evaluator.cc
}  // namespace count

// A count with the event's name, as the input of a metric.
struct NamedCount {
  std::string_view name{};
  Count count{};
  double scale = 1;           // Value of one count in the event's unit: EventConfig::scale.
  std::string_view reason{};  // Why it was not counted; "" if that is unknown, or if it was.
};

// An event's value, as the input of a metric: from a NamedCount, or computed by other means.
struct MetricPart {
  MetricPart() = default;
  // Takes the count of `counted`: scaled if it was multiplexed, but unscaled with kSomeCpus. Not counted if `counted`
  // is not.
  MetricPart(const NamedCount& counted);  // NOLINT(google-explicit-constructor)

  std::string_view name{};
  double value = 0;
  // How far the true value may lie below and above `value`; 0 for counts.
  double below = 0, above = 0;
  double coverage = 1;  // As Count::coverage.
  Validity validity{};
  std::string_view reason{};  // As NamedCount::reason.
};

// The value of a metric, "1.84 insn/cycle", with its bounds, coverage and validity; or why there is none.
struct MetricValue {
  double value = 0;                          // Meaningless if there is a reason.
  double below = 0, above = 0;               // How far the true value may lie below and above `value`; 0 for counts.
  double coverage = 0;                       // The lowest of all parts.
  Validity validity{Validity::kNotCounted};  // The flags of all parts; not counted if a part was not.
  std::string unit{};
  std::string reason{};  // Why there is no value; "" if there is one.

  bool has_value() const { return reason.empty(); }
};

// A parsed metric: an immutable value. Thread-safe.
class Metric {
 public:
  // Parses `text`. Reads sysfs, to check the names of events; an event that exists but cannot be counted here is no
  // error. Also accepts the names of events that only Measure counts: system-calls, calls.
  // Errors: InvalidArgument with the position of the mistake, what was expected there, and for an unknown event the
  // nearest names.
  static absl::StatusOr<Metric> Parse(std::string_view text, const EventRoots& roots = {});

  const std::string& text() const { return text_; }
  const std::string& name() const { return name_; }  // As written before '='; or else the text without its unit.
  const std::string& unit() const { return unit_; }  // As written in brackets; "" for none.
  // Returns the events that must be counted, each once, in the order of the text.
  const std::vector<std::string>& events() const { return events_; }
  bool needs_elapsed_time() const { return needs_elapsed_time_; }

  // Returns the value for the counts of one region. `wall_ns` is its elapsed time; 0 means unknown. Returns a reason
  // instead of a value if a part is missing or was not counted, if the metric needs an unknown elapsed time, divides by
  // 0 or is not finite, or if some parts are kUserOnly and others are not. Exempt are clocks, events that the kernel
  // raises, and parts with modifiers of their own, such as :u. Allocates; for reports, not for hot paths.
  MetricValue Evaluate(std::span<const MetricPart> parts, uint64_t wall_ns = 0) const;
  MetricValue Evaluate(std::span<const NamedCount> counts, uint64_t wall_ns = 0) const;

 private:
  friend class count::MetricParser;
  friend class count::MetricEvaluator;

  // What the evaluator does next with its stack of numbers.
  struct Step {
    enum class Kind : uint8_t { kNumber, kEvent, kSeconds, kNanoseconds, kAdd, kSubtract, kMultiply, kDivide };
    Kind kind;
    double number = 0;  // kNumber
    size_t event = 0;   // kEvent: index in events().
  };

  std::string text_, name_, unit_;
  std::vector<std::string> events_;
  std::vector<Step> steps_;  // In reverse Polish order.
  bool needs_elapsed_time_ = false;
};

}  // namespace perfkit
