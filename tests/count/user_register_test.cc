// Open holds a counter's register against read(2), and reads by the kernel what does not agree. The CPU's part is
// played by a signal handler, as in rdpmc_test.cc.
#include <catch2/catch.hpp>

#include "tests/count/sets.h"
#include "tests/support/lying_kernel.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

#if defined(__x86_64__)
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <array>

namespace perfkit {
namespace {

using testing::FakeKernel;

// A number that no CPU has a counter of.
constexpr uint32_t kNoRegister = 0x12'3456;

// The machine: what the register and read(2) say.
uint64_t g_register = 0, g_truth = 0, g_step = 0;
int g_asked = 0;
alignas(4096) UserPage g_page;

void AnswerForCounter(int signal, siginfo_t*, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto* const code = reinterpret_cast<const uint8_t*>(registers[REG_RIP]);
  if (code[0] != 0x0f || code[1] != 0x33) {
    ::signal(signal, SIG_DFL);
    return;
  }
  ++g_asked;
  g_register += g_step;
  registers[REG_RAX] = static_cast<greg_t>(g_register & 0xffff'ffff);
  registers[REG_RDX] = static_cast<greg_t>(g_register >> 32);
  registers[REG_RIP] += 2;
}

// A counter in register `n`, and a kernel whose reads are dear: rdpmc is not, by a signal.
class Machine {
 public:
  explicit Machine(uint32_t n) {
    g_page = {};
    g_page.lock = 2;
    g_page.index = n + 1;
    g_page.pmc_width = 48;
    g_page.capabilities = UserPage::kCanReadCounter;
    g_register = g_truth = 1000;
    g_step = 0;
    g_asked = 0;
    testing::MakeHardwareSilent(fake_);
    fake_.below().mmap = [](void* address, size_t size, int protection, int flags, int fd, off_t offset) {
      void* const at = sys::kLinux.mmap(address, size, protection, flags, fd, offset);
      return fd >= 0 && g_maps++ == 0 ? static_cast<void*>(&g_page) : at;
    };
    g_maps = 0;
    fake_.below().munmap = [](void* at, size_t size) { return at == &g_page ? 0 : sys::kLinux.munmap(at, size); };
    fake_.below().read = [](int fd, void* buffer, size_t size) {
      const uint64_t since = testing::NowNs();
      while (testing::NowNs() - since < 50'000) {
      }
      // A group of one with its times, or room for a group of any size: all else is a file.
      const bool of_group = size == 3 * sizeof(uint64_t) || size == (3 + kMaxEvents) * sizeof(uint64_t);
      if (!of_group) return sys::kLinux.read(fd, buffer, size);
      const std::array<uint64_t, 3> words = {g_truth, 1000, 1000};  // of one member alone
      std::copy(words.begin(), words.end(), static_cast<uint64_t*>(buffer));
      return static_cast<ssize_t>(sizeof(words));
    };
    struct sigaction action {};
    action.sa_sigaction = AnswerForCounter;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &old_segv_);
    sigaction(SIGILL, &action, &old_ill_);
  }
  ~Machine() {
    sigaction(SIGSEGV, &old_segv_, nullptr);
    sigaction(SIGILL, &old_ill_, nullptr);
  }

  static bool LeavesRegistersToUs() {
    uint32_t low, high;
    asm volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(kNoRegister));
    return g_asked == 1;
  }

  static ReadPath PathOfInstructions() {
    const auto set = CounterSet::Open({event::kInstructions});
    INFO(set.status());
    REQUIRE(set.ok());
    return set->path(0);
  }

 private:
  static inline int g_maps = 0;
  FakeKernel fake_;
  struct sigaction old_segv_, old_ill_;
};

TEST_CASE("a register that agrees with the kernel is read, one that does not is left to the kernel",
          "[user_register][law]") {
  {
    const Machine machine(kNoRegister);
    if (!Machine::LeavesRegistersToUs()) SKIP_TEST("this CPU answers for counters that it does not have");
  }
  {
    const Machine machine(kNoRegister);
    CHECK(Machine::PathOfInstructions() == ReadPath::kUserPage);
    CHECK(g_asked > 0);
  }
  {
    const Machine machine(kNoRegister);
    const auto set = CounterSet::Open({event::kInstructions});
    REQUIRE(set.ok());
    Snapshot begin, end;
    set->Read(begin);
    g_register += 500;
    g_truth += 500;  // For a read by the kernel, if the thread is switched just then.
    set->Read(end);
    CHECK(set->Difference(begin, end, 0).value == 500);
  }
  for (const uint64_t wrong : {uint64_t{999}, uint64_t{1001}, uint64_t{0}, uint64_t{1} << 40}) {
    const Machine machine(kNoRegister);
    g_register = wrong;
    CHECK(Machine::PathOfInstructions() == ReadPath::kGroupRead);
  }
  {
    const Machine machine(kNoRegister);  // runs away
    g_step = 1;
    CHECK(Machine::PathOfInstructions() == ReadPath::kGroupRead);
  }
}

TEST_CASE("top-down metrics are read by the kernel: their register holds fractions", "[user_register][law]") {
  const Machine machine(1u << 29);
  CHECK(Machine::PathOfInstructions() == ReadPath::kGroupRead);
  CHECK(g_asked == 0);
}

}  // namespace
}  // namespace perfkit
#endif
