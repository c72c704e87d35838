// Options that cannot work: each is refused under its own name, and its limit is not.
#include "src/session/check_options.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>

#include "perfkit/session.h"

namespace perfkit::session {
namespace {

using namespace std::chrono_literals;

struct Case {
  const char* name;  // Of the option.
  const char* value;
  void (*set)(SessionOptions& options);
};

constexpr Case kRefused[] = {
    {"keep_last", "-1 ns", [](SessionOptions& options) { options.keep_last = -1ns; }},
    {"stop_after", "-1 ns", [](SessionOptions& options) { options.stop_after = -1ns; }},
    {"stop_when_idle", "-5000000000 ns", [](SessionOptions& options) { options.stop_when_idle = -5s; }},
    {"look_after", "-1000000 ns", [](SessionOptions& options) { options.look_after = -1ms; }},
    {"lock_waits_from", "-9223372036854775808 ns",
     [](SessionOptions& options) { options.lock_waits_from = std::chrono::nanoseconds::min(); }},
    {"cpu_budget", "inf",
     [](SessionOptions& options) { options.cpu_budget = std::numeric_limits<double>::infinity(); }},
    {"cpu_budget", "nan",
     [](SessionOptions& options) { options.cpu_budget = std::numeric_limits<double>::quiet_NaN(); }},
    {"cpu_budget", "-0.5", [](SessionOptions& options) { options.cpu_budget = -0.5; }},
    {"thread_name", "\"[,\"", [](SessionOptions& options) { options.thread_name = "[,"; }},
    {"thread_name", "\"a\\\"", [](SessionOptions& options) { options.thread_name = "a\\"; }},
    {"memory_bytes", "18446744073709551615", [](SessionOptions& options) { options.memory_bytes = SIZE_MAX; }},
};

constexpr Case kFine[] = {
    {"times of 0", "",
     [](SessionOptions& options) {
       options.keep_last = options.stop_after = options.stop_when_idle = 0ns;
       options.look_after = options.lock_waits_from = 0ns;
     }},
    {"stop_after", "", [](SessionOptions& options) { options.stop_after = std::chrono::nanoseconds::max(); }},
    {"cpu_budget", "", [](SessionOptions& options) { options.cpu_budget = 1000; }},
    {"thread_name", "", [](SessionOptions& options) { options.thread_name = "\\[[0-9]*"; }},
    {"memory_bytes", "", [](SessionOptions& options) { options.memory_bytes = size_t{1} << 40; }},
};

TEST_CASE("a value out of range is refused under its own name, in both modes", "[session]") {
  for (const RingMode mode : {RingMode::kStream, RingMode::kOverwrite}) {
    for (const Case& one : kRefused) {
      SessionOptions options{.stacks = SessionStacks::kNone, .mode = mode};
      one.set(options);
      const absl::Status status = Session::Start(options).status();
      INFO(status);
      CHECK(absl::IsInvalidArgument(status));
      const std::string begin = std::string("SessionOptions::") + one.name + " is " + one.value;
      CHECK_THAT(std::string(status.message()), Catch::StartsWith(begin) && Catch::Contains(" Remedy: "));
    }
  }
}

TEST_CASE("values at their limits are permitted", "[session]") {
  for (const Case& one : kFine) {
    INFO(one.name);
    SessionOptions options;
    one.set(options);
    CHECK(CheckOptions(options) == absl::OkStatus());
  }
}

TEST_CASE("memory that holds no rings is refused under the session's own name", "[session]") {
  for (const SessionStacks stacks : {SessionStacks::kBest, SessionStacks::kFramePointers, SessionStacks::kNone}) {
    const absl::Status status =
        Session::Start({.stacks = stacks, .mode = RingMode::kOverwrite, .memory_bytes = 1}).status();
    INFO(status);
    CHECK(absl::IsResourceExhausted(status));
    CHECK_THAT(std::string(status.message()),
               Catch::StartsWith("SessionOptions::memory_bytes is 1: ") && Catch::Contains(" Remedy: raise it"));
    CHECK_THAT(std::string(status.message()), !Catch::Contains("kPerCpu") && !Catch::Contains("SamplerOptions"));
  }
  CHECK(Session::Start({.stacks = SessionStacks::kNone, .memory_bytes = 1}).status() == absl::OkStatus());
}

}  // namespace
}  // namespace perfkit::session
