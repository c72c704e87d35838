// Matchers that assert on what code costs, for Catch2 (v2, v3) and GoogleTest.
//
// Include the framework first; otherwise perfkit::detail::ReportNeedsAFramework_IncludeItFirst is undefined.
//
//   using namespace perfkit;
//   using namespace perfkit::event;
//   auto m = Measure({kInstructions, kAllocations}, [&] { return table.find(42); });
//   CHECK_THAT(m, Costs(UpTo(1'200), kInstructions) && Never(kAllocations));  // in GoogleTest: EXPECT_THAT
//   CHECK_THAT(Compare({kInstructions}, new_fn, old_fn), UsesUpTo(0.9, kInstructions));
//   CHECK_THAT(Scaling({kInstructions}, fn, {1 << 6, 1 << 8, 1 << 10}), GrowsNoFasterThan(kNLogN, kInstructions));
//   CHECK_THAT(m, WithinBaseline("find42", 0.5_percent));
//   CHECK_THAT(m, MetricUpTo(0.01, "allocations / instructions"));  // in the language of metric.h
//
// A check passes, fails, or is unmeasurable for a reason (no PMU, no permission, beyond the stepper's budget, too
// noisy). An unmeasurable check is never silent:
//
//   GoogleTest, Catch2 v3   the test is marked as skipped, with the reason, and goes on; a later failure fails it
//   Catch2 v2               a warning, and a closing tally on standard error
//   any                     a failure, with PERFKIT_REQUIRE=all or a list of events (instructions,allocations) in the
//                           environment, or if that list has a word that is the name of no event
//
// Reports for machines contain the counts: GoogleTest's XML as properties perfkit.<event>, Catch2's XML and JUnit in
// the captured output.
#pragma once

#include "perfkit/detail/library_only.h"

#include <concepts>
#include <cstdint>
#include <functional>
#include <iostream>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perfkit/measure.h"

namespace perfkit {

enum class Outcome : uint8_t { kPass, kFail, kUnmeasurable };

// The outcome of a check, and why. `&&`, `||` and `!` follow Kleene's three-valued logic: `&&` fails if one side fails,
// `||` passes if one side passes; otherwise the result is unmeasurable if one side is. `!` keeps unmeasurable.
struct Verdict {
  Outcome outcome = Outcome::kPass;
  std::string why;        // The limit, the counts and the read path; or why there is no count.
  bool required = false;  // Unmeasurable, and PERFKIT_REQUIRE names the event or is wrong: counts as a failure.
};
Verdict And(const Verdict& a, const Verdict& b);
Verdict Not(const Verdict& verdict);
inline Verdict operator&&(const Verdict& a, const Verdict& b) { return And(a, b); }
inline Verdict operator!(const Verdict& verdict) { return Not(verdict); }
inline Verdict operator||(const Verdict& a, const Verdict& b) { return !(!a && !b); }

// Allowed costs. A plain number allows exactly that number.
struct Limit {
  template <std::integral T>
  constexpr Limit(T exactly)  // NOLINT(google-explicit-constructor)
      : low(static_cast<int64_t>(exactly)), high(static_cast<int64_t>(exactly)) {}
  constexpr Limit(int64_t lowest, int64_t highest) : low(lowest), high(highest) {}

  int64_t low, high;  // Both ends are allowed.
};
// Allows at most `most`.
constexpr Limit UpTo(int64_t most) { return {std::numeric_limits<int64_t>::min(), most}; }

// An event with a limit for one machine: its host name, or PERFKIT_MACHINE in the environment.
struct MachineEvent {
  EventType event;
  std::string_view machine;
};
// Returns `event` with a limit that applies on `machine` only: elsewhere the check is unmeasurable. If `machine` is "",
// which names none, the check of a noisy event or a clock fails.
constexpr MachineEvent On(std::string_view machine, const EventType& event) { return {event, machine}; }

namespace detail {
// Not defined. A call in a constant expression is a compile-time error, and the compiler's message has this name.
void FixedLimitOnNoisyEventNeedsAMachine_UseOn();

// Returns true if a limit on `event` may hold on any machine.
constexpr bool MayHaveFixedLimit(const EventType& event) {
  const EventClass event_class = ClassOf(event);
  return event_class == EventClass::kExact || event_class == EventClass::kNearExact;
}
}  // namespace detail

// An event that may have a fixed limit: an exact or near-exact event, or a noisy event or clock with the name of a
// machine. Checked at compile time.
struct LimitedEvent {
  consteval LimitedEvent(const EventType& named) : event(named) {  // NOLINT(google-explicit-constructor)
    if (!detail::MayHaveFixedLimit(named)) detail::FixedLimitOnNoisyEventNeedsAMachine_UseOn();
  }
  LimitedEvent(const CallsEvent& calls) : event(calls) {}  // NOLINT(google-explicit-constructor)
  LimitedEvent(const MachineEvent& on)                     // NOLINT(google-explicit-constructor)
      : event(on.event), machine(on.machine) {}

  EventType event;
  std::string_view machine = "";  // "" means any.
};

// Percent.
struct Percent {
  double value;
};
inline namespace literals {
consteval Percent operator""_percent(long double value) { return {static_cast<double>(value)}; }
consteval Percent operator""_percent(unsigned long long value) { return {static_cast<double>(value)}; }
}  // namespace literals

// How a cost grows with the size n.
enum class Growth : uint8_t { kConstant, kLogN, kN, kNLogN, kN2, kN3 };
inline constexpr Growth kConstant = Growth::kConstant, kLogN = Growth::kLogN, kN = Growth::kN, kNLogN = Growth::kNLogN,
                        kN2 = Growth::kN2, kN3 = Growth::kN3;

// Return the verdicts of the matchers below, for use without a framework. They fail if the result lacks the event
// because Measure was not asked for it, and are unmeasurable if its cost is. An entry that the baseline lacks is
// unmeasurable; a damaged baseline fails. JudgeCosts is also unmeasurable if the confidence interval of a noisy event
// or a clock contains a limit.
Verdict JudgeCosts(const Measurement& measurement, const Limit& limit, const LimitedEvent& event);
// Passes if the subject costs at most `factor` times the reference. For a noisy event or a clock: unmeasurable if the
// confidence interval contains the limit, or if the reference may cost 0. Fails if `factor` is negative or no number.
Verdict JudgeUses(const Comparison& comparison, double factor, const EventType& event);
// Passes if the fitted exponent exceeds that of `growth` by at most 0.05 (noisy events and clocks: 0.15). Fails if the
// largest size is less than 4 times the smallest, or if a size is 0. If the cost is 0 at some sizes only, it fails if
// these are the smallest ones and growth is too fast even with 1 for 0, and otherwise is unmeasurable.
Verdict JudgeGrowth(const ScalingResult& result, Growth growth, const EventType& event);
// Passes if the metric `text` (metric.h) of the measured events lies in `range`. Its events are named as those of the
// measurement. `machine` is as in On; "" means any. With a noisy event or a clock, fails if `machine` is "", and is
// unmeasurable if the confidence interval contains a limit. Also unmeasurable for a division by 0, and if some of its
// events count user space only (Cost::user_only) and others the kernel, too. PERFKIT_REQUIRE may name the metric or one
// of its events. Fails for text that does not parse, and for a metric with an elapsed time.
Verdict JudgeMetric(const Measurement& measurement, std::string_view text, Interval range,
                    std::string_view machine = "");
// Compares each event with the number that was read by the same Cost::read_path (for noisy events: on the same machine)
// and written to entry `name` of a JSON file. Passes if the whole interval of the cost is within `tolerance` of it.
// Unmeasurable if there is no such number, or if a noisy interval contains the limit. With PERFKIT_BASELINE_UPDATE=1
// (true, yes, on) in the environment, writes the measured numbers into the entry instead, and keeps its others. Then
// fails if it can't write, and is unmeasurable if a cost is. Fails if `measurement` has no event, if `tolerance` is
// negative or no number, if `file` is not a regular file, and if PERFKIT_BASELINE_UPDATE is neither a yes nor a no.
Verdict JudgeBaseline(const Measurement& measurement, std::string_view name, Percent tolerance,
                      const std::string& file);

namespace detail {

// Returns pairs such as "perfkit.instructions" and "1234", for reports.
using Properties = std::vector<std::pair<std::string, std::string>>;
Properties PropertiesOf(const Measurement& measurement);
Properties PropertiesOf(const Comparison& comparison);
Properties PropertiesOf(const ScalingResult& result);

// Counts unmeasurable checks, for frameworks without a skip (Catch2 v2); prints them when the program ends.
void TallyUnmeasurable(const std::string& why);

// A line of a test: where its matcher was made. A framework does not tell a matcher the line of the check.
struct TestLine {
  const char* file;
  int line;
};

void SayToFramework(const Properties& properties);
void SkipInFramework(const std::string& why, const TestLine& at);

// Reports the verdict to the framework. Returns true if the check counts as passed.
bool ReportNeedsAFramework_IncludeItFirst(const Verdict& verdict, const Properties& properties, const TestLine& at);

std::string PathBeside(const char* source_file);

}  // namespace detail

// A matcher for one kind of result: what Catch2 and GoogleTest ask of a matcher, without either's types. Combine
// matchers by `&&`, `||` and `!`, but not by testing::Not, for which an unmeasurable check is a match. `file` and
// `line` are what a skip names: the caller's. `file` must be valid for the whole process.
template <class Subject>
class CostMatcher {
 public:
  using Judge = std::function<Verdict(const Subject&)>;
  CostMatcher(std::string description, Judge judge, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : description_(std::move(description)), judge_(std::move(judge)), at_{file, line} {}

  Verdict Check(const Subject& subject) const { return judge_(subject); }

  friend CostMatcher operator&&(const CostMatcher& a, const CostMatcher& b) {
    return {a.description_ + " and " + b.description_, [a, b](const Subject& s) { return a.Check(s) && b.Check(s); },
            a.at_.file, a.at_.line};
  }
  friend CostMatcher operator||(const CostMatcher& a, const CostMatcher& b) {
    return {"(" + a.description_ + " or " + b.description_ + ")",
            [a, b](const Subject& s) { return a.Check(s) || b.Check(s); }, a.at_.file, a.at_.line};
  }
  friend CostMatcher operator!(const CostMatcher& a) {
    return {"not (" + a.description_ + ")", [a](const Subject& s) { return !a.Check(s); }, a.at_.file, a.at_.line};
  }

  // Catch2. It calls toString after match, so the text can include why the match failed.
  bool match(const Subject& subject) const {
    const Verdict verdict = Check(subject);
    why_ = verdict.why;
    return detail::ReportNeedsAFramework_IncludeItFirst(verdict, detail::PropertiesOf(subject), at_);
  }
  std::string toString() const { return "\n" + description_ + (why_.empty() ? "" : "\n" + why_); }

  // GoogleTest.
  using is_gtest_matcher = void;
  bool MatchAndExplain(const Subject& subject, std::ostream* out) const {
    const Verdict verdict = Check(subject);
    if (out != nullptr) *out << verdict.why;
    return detail::ReportNeedsAFramework_IncludeItFirst(verdict, detail::PropertiesOf(subject), at_);
  }
  void DescribeTo(std::ostream* out) const { *out << description_; }
  void DescribeNegationTo(std::ostream* out) const { *out << "not (" << description_ << ")"; }

 private:
  std::string description_;
  Judge judge_;
  detail::TestLine at_;
  mutable std::string why_;  // Of the last match.
};

namespace detail {
std::string Describe(const Limit& limit, const LimitedEvent& event);
std::string Describe(double factor, const EventType& event);
std::string Describe(Growth growth, const EventType& event);
std::string Describe(std::string_view baseline, Percent tolerance);
std::string Describe(std::string_view metric, Interval range, std::string_view machine);
}  // namespace detail

// The last parameters of each function below are the line of its caller, which a skip names.

// Matches if `event` costs what `limit` allows: UpTo(n), or exactly n.
inline CostMatcher<Measurement> Costs(Limit limit, LimitedEvent event, const char* file = __builtin_FILE(),
                                      int line = __builtin_LINE()) {
  return {detail::Describe(limit, event), [=](const Measurement& m) { return JudgeCosts(m, limit, event); }, file,
          line};
}
// Matches if `event` does not happen.
inline CostMatcher<Measurement> Never(LimitedEvent event, const char* file = __builtin_FILE(),
                                      int line = __builtin_LINE()) {
  return Costs(0, event, file, line);
}

// Matches if the subject costs at most `factor` times the reference: JudgeUses.
inline CostMatcher<Comparison> UsesUpTo(double factor, EventType event, const char* file = __builtin_FILE(),
                                        int line = __builtin_LINE()) {
  return {detail::Describe(factor, event), [=](const Comparison& c) { return JudgeUses(c, factor, event); }, file,
          line};
}

// Matches if the cost grows no faster with n than `growth`: JudgeGrowth.
inline CostMatcher<ScalingResult> GrowsNoFasterThan(Growth growth, EventType event, const char* file = __builtin_FILE(),
                                                    int line = __builtin_LINE()) {
  return {detail::Describe(growth, event), [=](const ScalingResult& r) { return JudgeGrowth(r, growth, event); }, file,
          line};
}

// Match if the metric `text` lies in `range`, is at most `limit`, or is at least `limit`: JudgeMetric.
inline CostMatcher<Measurement> MetricIn(Interval range, std::string text, std::string machine = "",
                                         const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  std::string description = detail::Describe(text, range, machine);
  return {std::move(description), [=](const Measurement& m) { return JudgeMetric(m, text, range, machine); }, file,
          line};
}
inline CostMatcher<Measurement> MetricUpTo(double limit, std::string text, std::string machine = "",
                                           const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return MetricIn({-std::numeric_limits<double>::infinity(), limit}, std::move(text), std::move(machine), file, line);
}
inline CostMatcher<Measurement> MetricAtLeast(double limit, std::string text, std::string machine = "",
                                              const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return MetricIn({limit, std::numeric_limits<double>::infinity()}, std::move(text), std::move(machine), file, line);
}

// Matches if the costs are within `tolerance` of entry `name` in the baseline: JudgeBaseline. The file is
// perfkit_baseline.json in the folder of the calling source file, or PERFKIT_BASELINE in the environment.
inline CostMatcher<Measurement> WithinBaseline(std::string name, Percent tolerance,
                                               const char* source_file = __builtin_FILE(),
                                               int line = __builtin_LINE()) {
  std::string description = detail::Describe(name, tolerance);
  return {std::move(description),
          [=, file = detail::PathBeside(source_file)](const Measurement& m) {
            return JudgeBaseline(m, name, tolerance, file);
          },
          source_file, line};
}

inline std::ostream& operator<<(std::ostream& out, const Measurement& m) { return out << m.ToString(); }
inline std::ostream& operator<<(std::ostream& out, const Comparison& c) { return out << c.ToString(); }
inline std::ostream& operator<<(std::ostream& out, const ScalingResult& r) { return out << r.ToString(); }

}  // namespace perfkit

// Reports skips and numbers to the framework.
#if defined(GTEST_TEST) || defined(INTERNAL_CATCH_TESTCASE)
namespace perfkit::detail {

#if defined(GTEST_TEST)

// As properties of the running test: XML and JSON reports have them.
inline void SayToFramework(const Properties& properties) {
  for (const auto& [name, value] : properties) ::testing::Test::RecordProperty(name, value);
}

// Does what GTEST_SKIP() does, without its `return`: a later failure must still fail the test.
inline void SkipInFramework(const std::string& why, const TestLine& at) {
  GTEST_MESSAGE_AT_(at.file, at.line, "", ::testing::TestPartResult::kSkip) << "unmeasurable: " << why;
}

#else

// Reporters for machines add the captured std::cout to the report; on a terminal it would be noise.
inline void SayToFramework(const Properties& properties) {
#if defined(__cpp_rtti)
  if (dynamic_cast<std::stringbuf*>(std::cout.rdbuf()) == nullptr) return;
  for (const auto& [name, value] : properties) std::cout << name << "=" << value << "\n";
#else
  (void)properties;
#endif
}

// What the macros WARN and SKIP do, with another line.
inline void Message(const char* macro, ::Catch::ResultWas::OfType type, const std::string& text, const TestLine& at) {
  ::Catch::AssertionHandler handler(::Catch::StringRef(macro, std::string_view(macro).size()),
                                    ::Catch::SourceLineInfo(at.file, static_cast<size_t>(at.line)),
                                    ::Catch::StringRef(), ::Catch::ResultDisposition::ContinueOnFailure);
  handler.handleMessage(type, std::string(text));
  handler.complete();
}

#if defined(CATCH_TEST_MACROS_HPP_INCLUDED)  // Catch2 v3

// As SKIP(), but the test goes on, because the exception of SKIP() must not leave a matcher, and a later failure must
// still fail the test.
inline void SkipInFramework(const std::string& why, const TestLine& at) {
  CATCH_TRY { Message("SKIP", ::Catch::ResultWas::ExplicitSkip, "unmeasurable: " + why, at); }
  CATCH_CATCH_ALL {}
}

#else  // Catch2 v2 has no skip

inline void SkipInFramework(const std::string& why, const TestLine& at) {
  Message("WARN", ::Catch::ResultWas::Warning, "unmeasurable: " + why, at);
  TallyUnmeasurable(why);
}

#endif
#endif

inline bool ReportNeedsAFramework_IncludeItFirst(const Verdict& verdict, const Properties& properties,
                                                 const TestLine& at) {
  SayToFramework(properties);
  if (verdict.outcome != Outcome::kUnmeasurable) return verdict.outcome == Outcome::kPass;
  if (verdict.required) return false;
  SkipInFramework(verdict.why, at);
  return true;
}

}  // namespace perfkit::detail
#endif
