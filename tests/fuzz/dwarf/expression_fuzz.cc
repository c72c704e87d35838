// Fuzzes the evaluator of DWARF expressions with expressions.
#include "src/unwind/dwarf/cfi/expression.h"
#include "tests/fuzz/fuzz_target.h"

namespace perfkit {

PERFKIT_FUZZ_TARGET(FuzzExpression) {
  uint64_t reads = 0;
  const auto memory = [&](uint64_t address, unsigned bytes) -> std::optional<uint64_t> {
    PERFKIT_FUZZ_CHECK(bytes >= 1 && bytes <= 8);
    ++reads;
    return address % 3 == 0 ? std::nullopt : std::optional<uint64_t>(address ^ bytes);
  };
  const auto reg = [&](uint64_t number) -> std::optional<uint64_t> {
    ++reads;
    return number > 40 ? std::nullopt : std::optional<uint64_t>(~number);
  };
  const base::Bytes bytes = std::as_bytes(std::span(data, size));
  unwind::Evaluate(bytes, 7, {memory, reg, 7});
  unwind::Evaluate(bytes, std::nullopt, {memory, reg});
  PERFKIT_FUZZ_CHECK(reads <= 2000);  // a step reads once
  return 0;
}

}  // namespace perfkit
