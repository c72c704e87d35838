// The instruction itself, on x86, without counters: a CPU raises SIGSEGV for a counter that it doesn't have, and the
// test answers in its place.
#include <catch2/catch.hpp>

#include "tests/count/fake_page.h"
#include "tests/support/skip.h"

#if defined(__x86_64__)
#include <signal.h>
#include <ucontext.h>

namespace perfkit {
namespace {

// What the instruction asked for, and what it gets: edx:eax.
struct Answer {
  uint32_t asked = 0;
  int times = 0;
  uint64_t value = 0;
};
Answer answer;

// rdpmc is 0f 33. Any other fault is a real crash, and ends the program.
void AnswerRdpmc(int signal, siginfo_t*, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto* const code = reinterpret_cast<const uint8_t*>(registers[REG_RIP]);
  if (code[0] != 0x0f || code[1] != 0x33) {
    ::signal(signal, SIG_DFL);
    return;
  }
  answer.asked = static_cast<uint32_t>(registers[REG_RCX]);
  ++answer.times;
  registers[REG_RAX] = static_cast<greg_t>(answer.value & 0xffff'ffff);
  registers[REG_RDX] = static_cast<greg_t>(answer.value >> 32);
  registers[REG_RIP] += 2;
}

// Takes the signals of forbidden (SIGSEGV) and unknown (SIGILL) instructions as long as it lives.
class Answering {
  using Action = struct sigaction;

 public:
  explicit Answering(uint64_t value) {
    answer = {.value = value};
    Action action{};
    action.sa_sigaction = AnswerRdpmc;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &old_segv_);
    sigaction(SIGILL, &action, &old_ill_);
  }
  ~Answering() {
    sigaction(SIGSEGV, &old_segv_, nullptr);
    sigaction(SIGILL, &old_ill_, nullptr);
  }

 private:
  Action old_segv_{}, old_ill_{};
};

// Numbers that no CPU has, with and without the bit of fixed counters.
constexpr uint32_t kNone[] = {0x12'3456, (1u << 30) + 0x1234};

// "" when this CPU leaves such numbers to us.
const char* WhyNoTrap() {
  const Answering answering(0);
  uint32_t low, high;
  asm volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(kNone[0]));
  return answer.times == 1 ? "" : "this CPU answers for counters that it does not have";
}

TEST_CASE("a register is read by rdpmc, with the number that was asked for, all 64 bits", "[rdpmc]") {
  if (const std::string why = WhyNoTrap(); !why.empty()) SKIP_TEST(why);
  for (const uint32_t n : kNone) {
    for (const uint64_t value : {uint64_t{0}, uint64_t{0x8000'0000}, uint64_t{0x1234'5678'9abc'def0}, ~uint64_t{0}}) {
      const Answering answering(value);
      CHECK(ReadCounterRegister(n) == value);
      CHECK(answer.times == 1);
      CHECK(answer.asked == n);
    }
  }
}

TEST_CASE("a page leads to rdpmc of its index less one, and its number is widened", "[rdpmc]") {
  if (const std::string why = WhyNoTrap(); !why.empty()) SKIP_TEST(why);
  for (const uint32_t n : kNone) {
    UserPage page = testing::PageWithCounter(n + 1, 48);
    page.offset = 1'000'000;
    const Answering answering(0xffff'ffff'fff0);
    UserCount count;
    REQUIRE(ReadUserCount(page, count));
    CHECK(count.value == 1'000'000 - 16);
    CHECK(answer.asked == n);
    CHECK(answer.times == 1);
  }
}

TEST_CASE("a page without index or right never leads to rdpmc", "[rdpmc]") {
  if (const std::string why = WhyNoTrap(); !why.empty()) SKIP_TEST(why);
  const Answering answering(1);
  UserCount count;
  CHECK_FALSE(ReadUserCount(testing::PageWithCounter(0, 48), count));
  UserPage page = testing::PageWithCounter(kNone[0] + 1, 48);
  page.capabilities = UserPage::kCanTellTime;
  CHECK_FALSE(ReadUserCount(page, count));
  CHECK(answer.times == 0);
}

}  // namespace
}  // namespace perfkit
#endif
