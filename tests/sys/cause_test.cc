// The cause of an error, taken out of its message for tables.
#include <errno.h>

#include <catch2/catch.hpp>

#include "src/sys/perf_error.h"

namespace perfkit::sys {
namespace {

constexpr Rights kUser{.paranoid = 2, .euid = 1000, .perfmon = false};

TEST_CASE("the cause stands alone, without what was asked, what was said, and the remedy", "[perf_error]") {
  CHECK(CauseOf(PerfError(PerfCall::kOpen, ENOENT, "event 'cycles' on this thread", kUser)) ==
        "no PMU of this machine has that event");
  CHECK(CauseOf(PerfError(PerfCall::kOpen, EACCES, "event 'cycles:k' on CPU 3", kUser)) ==
        "the kernel forbids it to this process");
  CHECK(CauseOf(absl::NotFoundError("event 'x': no such thing. Remedy: another")) == "no such thing");
}

TEST_CASE("a message without joints is its own cause, and success has none", "[perf_error]") {
  CHECK(CauseOf(absl::InternalError("just so")) == "just so");
  CHECK(CauseOf(absl::OkStatus()).empty());
  const std::string unknown = CauseOf(PerfError(PerfCall::kOpen, 4095, "event 'x' on this thread", kUser));
  CHECK(unknown.find("4095") != std::string::npos);
}

}  // namespace
}  // namespace perfkit::sys
