// The stepper against an instruction counter that we did not write: valgrind's callgrind, on code without rep.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>
#include <string>

#include "absl/strings/str_format.h"
#include "src/step/stepper.h"
#include "tests/support/run.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace {

// Loops, calls, branches on data, divisions; no rep, no call into a library.
volatile uint64_t g_seed = 42;
[[gnu::noinline]] uint64_t Collatz(uint64_t n) {
  uint64_t steps = 0;
  for (; n != 1; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  return steps;
}

}  // namespace

extern "C" [[gnu::noinline]] uint64_t perfkit_callgrind_probe() {
  uint64_t sum = 0;
  for (uint64_t i = 1; i <= g_seed; ++i) sum += Collatz(i) / (i + 1) + Collatz(g_seed + i);
  return sum;
}

namespace perfkit::step {
namespace {

// What callgrind counts beyond the stepper: the probe's own `ret`, which an empty region has too.
constexpr uint64_t kConstant = 1;

TEST_CASE("callgrind's victim", "[.victim]") { CHECK(perfkit_callgrind_probe() != 0); }

TEST_CASE("a stepper's victim", "[.victim]") { std::puts(Stepper::Open().status().ToString().c_str()); }

// Runs a test case of this program under a tool of valgrind's.
testing::Run UnderValgrind(const std::string& options, const std::string& test) {
  char self[4096] = {};
  if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0) return {};
  return testing::RunCommand(absl::StrFormat("valgrind %s '%s' \"%s\"", options, self, test));
}

// Instructions of the probe as callgrind counts them; 0 when it did not run.
uint64_t CallgrindCount() {
  char out[] = "/tmp/perfkit-callgrind-XXXXXX";
  close(mkstemp(out));
  const std::string options =
      absl::StrFormat("--tool=callgrind --toggle-collect=perfkit_callgrind_probe --callgrind-out-file=%s", out);
  uint64_t total = 0;
  if (UnderValgrind(options, "callgrind's victim").exit_code == 0) {
    std::ifstream file(out);
    for (std::string line; std::getline(file, line);) {
      if (line.rfind("totals: ", 0) == 0) total = std::stoull(line.substr(8));
    }
  }
  unlink(out);
  return total;
}

// What keeps valgrind from running this program; "": nothing.
std::string NoValgrind() {
  if (testing::kSanitized) return "valgrind runs no program with a sanitizer";
  if (testing::RunCommand("valgrind --version").exit_code != 0) return "valgrind is not installed";
  const testing::Run run = UnderValgrind("--tool=none", "a stepper's victim");
  const bool reads = run.output.find("debuginfo reader") == std::string::npos;
  return reads ? "" : "this valgrind cannot read the debug information of this compiler";
}

TEST_CASE("under valgrind, which has no trap flag, it says so", "[stepper]") {
  if (const std::string why = NoValgrind(); !why.empty()) SKIP_TEST(why);
  const testing::Run run = UnderValgrind("--tool=none", "a stepper's victim");
  INFO(run.output);
  CHECK(run.output.find("UNAVAILABLE: stepping instructions: the trap flag has no effect here") != std::string::npos);
}

TEST_CASE("callgrind counts the same, within the stated constant", "[stepper]") {
  if (const std::string why = NoValgrind(); !why.empty()) SKIP_TEST(why);
  const auto stepper = Stepper::Open();
  if (absl::IsUnavailable(stepper.status())) SKIP_TEST(stepper.status().ToString());
  REQUIRE(stepper.ok());
  // Compiled to one call or one jump: what is around the probe is the stub's, and measured by an empty twin.
  const auto count = stepper->Run([](void*) { perfkit_callgrind_probe(); }, nullptr);
  REQUIRE(count.ok());
  const uint64_t callgrind = CallgrindCount();
  INFO("stepper " << count->instructions << ", callgrind " << callgrind);
  REQUIRE(callgrind > 1000);
  const uint64_t apart =
      callgrind > count->instructions ? callgrind - count->instructions : count->instructions - callgrind;
  CHECK(apart <= kConstant + 4);  // 4: call, and the frame that a build without optimisation puts around it
  CHECK(count->rounds == 0);
}

}  // namespace
}  // namespace perfkit::step
