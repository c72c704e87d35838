// The probe of user-space reads. A signal handler answers for the counter register, as in
// tests/count/user_register_test.cc.
#include <catch2/catch.hpp>

#include "src/doctor/findings.h"
#include "tests/support/lying_kernel.h"
#include "tests/support/skip.h"

#if defined(__x86_64__)
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "perfkit/detail/user_page.h"

namespace perfkit::doctor {
namespace {

using testing::FakeKernel;

// The number of a counter that no CPU has.
constexpr uint32_t kAbsentCounter = 0x12'3456;

uint64_t g_counter = 0;  // What the register says.
uint64_t g_counter_step = 0;
int g_counter_reads = 0;
bool g_page_is_mapped = false;
alignas(4096) UserPage g_counter_page;

// Answers rdpmc; any other instruction fails as it would without this handler.
void AnswerRdpmc(int signal, siginfo_t*, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto* const code = reinterpret_cast<const uint8_t*>(registers[REG_RIP]);
  if (code[0] != 0x0f || code[1] != 0x33) {
    ::signal(signal, SIG_DFL);
    return;
  }
  ++g_counter_reads;
  g_counter += g_counter_step;
  registers[REG_RAX] = static_cast<greg_t>(g_counter & 0xffff'ffff);
  registers[REG_RDX] = static_cast<greg_t>(g_counter >> 32);
  registers[REG_RIP] += 2;
}

// A kernel that opens hardware events and offers a register for them, which moves by `step` at each read.
class CounterMachine {
 public:
  explicit CounterMachine(uint64_t step) {
    g_counter_page = {};
    g_counter_page.lock = 2;
    g_counter_page.index = kAbsentCounter + 1;
    g_counter_page.pmc_width = 48;
    g_counter_page.capabilities = UserPage::kCanReadCounter;
    g_counter = 1000;
    g_counter_step = step;
    g_counter_reads = 0;
    g_page_is_mapped = false;
    testing::MakeHardwareSilent(fake_);
    fake_.below().mmap = [](void* address, size_t size, int protection, int flags, int fd, off_t offset) {
      if (fd < 0 || g_page_is_mapped) return sys::kLinux.mmap(address, size, protection, flags, fd, offset);
      g_page_is_mapped = true;
      return static_cast<void*>(&g_counter_page);
    };
    fake_.below().munmap = [](void* at, size_t size) {
      return at == &g_counter_page ? 0 : sys::kLinux.munmap(at, size);
    };
    struct sigaction action {};
    action.sa_sigaction = AnswerRdpmc;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &old_segv_);
    sigaction(SIGILL, &action, &old_ill_);
  }
  ~CounterMachine() {
    sigaction(SIGSEGV, &old_segv_, nullptr);
    sigaction(SIGILL, &old_ill_, nullptr);
  }
  CounterMachine(const CounterMachine&) = delete;
  CounterMachine& operator=(const CounterMachine&) = delete;

  static bool HandlerAnswers() {
    ReadCounterRegister(kAbsentCounter);
    return g_counter_reads == 1;
  }

 private:
  FakeKernel fake_;
  struct sigaction old_segv_, old_ill_;
};

Finding ProbeUserReadsWithPmu() {
  Context context{.rights = sys::ReadRights(), .workload = {}};
  context.has_pmu = true;
  return ProbeUserReads(context);
}

TEST_CASE("a register is reported only if it moves with the work", "[capabilities]") {
  {
    const CounterMachine machine(1);
    if (!CounterMachine::HandlerAnswers()) SKIP_TEST("this CPU answers for counters that it does not have");
  }
  {
    const CounterMachine machine(1);
    const Finding finding = ProbeUserReadsWithPmu();
    INFO(finding.status);
    if (!g_page_is_mapped) SKIP_TEST("this process may not open perf events: " + finding.status.ToString());
    CHECK(finding.state == CapabilityState::kPresent);
    CHECK(finding.found == "registers of 48 bits");
    CHECK(g_counter_reads == 2);
  }
  // A register that stands still, and one that runs backwards.
  for (const uint64_t step : {uint64_t{0}, ~uint64_t{0}}) {
    const CounterMachine machine(step);
    const Finding finding = ProbeUserReadsWithPmu();
    CHECK(finding.state == CapabilityState::kMissing);
    CHECK(absl::IsUnavailable(finding.status));
    CHECK(finding.cause.find("did not move") != std::string::npos);
    CHECK(g_counter_reads == 2);
  }
}

TEST_CASE("a page without the right to read its counter offers no user-space reads", "[capabilities]") {
  const CounterMachine machine(1);
  g_counter_page.capabilities = 0;
  const Finding finding = ProbeUserReadsWithPmu();
  if (!g_page_is_mapped) SKIP_TEST("this process may not open perf events: " + finding.status.ToString());
  CHECK(finding.state == CapabilityState::kMissing);
  CHECK(finding.status.ToString().find("does not offer it") != std::string::npos);
  CHECK(g_counter_reads == 0);
}

}  // namespace
}  // namespace perfkit::doctor
#endif
