// Tokens of a metric's text: include/perfkit/metric.h has the rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace perfkit::count {

struct MetricToken {
  enum class Kind : uint8_t { kEnd, kNumber, kName, kOperator, kOpen, kClose, kBracket, kEquals, kOther };
  Kind kind = Kind::kEnd;
  std::string_view text{};  // A view into the metric; empty at its end.
  double number = 0;        // kNumber
};

// Returns the first token of `text` after its leading blanks. A name is as long as an event can be.
MetricToken NextToken(std::string_view text);

}  // namespace perfkit::count
