// Parses a metric's text.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "perfkit/metric.h"
#include "src/count/metric/lexer.h"

namespace perfkit::count {

// Returns OK, or why `event` is no event's name.
using CheckEvent = absl::FunctionRef<absl::Status(std::string_view event)>;

// Descends from the sum to its operands, one token ahead, and appends what the evaluator has to do. For one text.
class MetricParser {
 public:
  // `text` must outlive this.
  MetricParser(std::string_view text, CheckEvent check) : whole_(text), rest_(text), check_(check) {}

  absl::StatusOr<Metric> Parse();

 private:
  using Step = Metric::Step;

  absl::Status ParseName();
  // Refuses several words before '=', as in "cost per fault = ...".
  absl::Status RefuseWords() const;
  absl::Status ParseSum(int depth);
  absl::Status ParseProduct(int depth);
  absl::Status ParseOperand(int depth);
  absl::Status ParseUnit();
  absl::Status AddEvent(std::string_view event);

  void Advance();
  void Append(Step step) { metric_.steps_.push_back(step); }
  // Returns the error that something else than the current token was expected.
  absl::Status Expected(std::string_view what) const;
  absl::Status Wrong(std::string_view piece, std::string_view why) const;

  std::string_view whole_;
  std::string_view rest_;  // The text after the current token.
  CheckEvent check_;
  MetricToken token_;
  Metric metric_;
};

// Parses a metric whose events are known to be right: perfkit's own.
Metric ParseOwnMetric(std::string_view text);

}  // namespace perfkit::count
