// Steps a region: prepares the thread (no debugger, SIGTRAP claimed and unblocked), runs the region under the trap
// flag, and turns its end into counts or a Status. Open proves on regions of known length that each instruction traps
// once, measures the cost of an empty region, which every run subtracts, and measures whether a system call swallows
// its own trap.
#include "src/step/stepper.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <errno.h>
#include <string.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>

#include "absl/strings/str_format.h"
#include "src/base/number.h"
#include "src/base/text.h"
#include "src/step/session.h"
#include "src/step/x86_64.h"
#include "src/sys/files.h"
#include "src/sys/handler_calls.h"
#include "src/sys/kernel.h"

namespace perfkit::step {
namespace {

absl::Status Unavailable(std::string why) {
  return absl::Status(absl::StatusCode::kUnavailable, "stepping instructions: " + why);
}

#if defined(__x86_64__)

absl::Status Failed(std::string why) {
  return absl::Status(absl::StatusCode::kFailedPrecondition, "stepping instructions: " + why);
}

// " (5 of them were rounds of rep)", or nothing for none.
std::string RoundsText(uint64_t rounds) {
  return rounds == 0 ? "" : absl::StrFormat(" (%d of them were rounds of rep)", rounds);
}

// `steps`: those that were taken.
absl::Status EndingStatus(const Session& session, const StepOptions& options, uint64_t steps) {
  switch (session.ending) {
    case Ending::kNone: return absl::OkStatus();
    case Ending::kBudget:
      return absl::Status(absl::StatusCode::kResourceExhausted,
                          absl::StrFormat("stepping instructions: the region takes more than the budget of %d steps, "
                                          "MeasureOptions::step_budget%s. Remedy: a smaller region, or a larger budget "
                                          "at 2 to 17 us a step",
                                          options.budget, RoundsText(session.count.rounds)));
    case Ending::kTime:
      return absl::Status(absl::StatusCode::kResourceExhausted,
                          absl::StrFormat("stepping instructions: over the limit of CPU time, "
                                          "MeasureOptions::step_cpu_ns, after %d steps of the region. Remedy: a "
                                          "smaller region, or a higher limit",
                                          steps));
    case Ending::kFlagLost: return Failed("the region cleared the CPU's trap flag, or left a signal handler by a jump");
    case Ending::kHandler: return Failed("the region installs a handler for SIGTRAP, which stepping needs");
    case Ending::kBareProcess:
      return Failed(
          "the region starts a process without signal handlers (CLONE_CLEAR_SIGHAND), which would die of "
          "the trap flag that it inherits");
    case Ending::kThread:
      return Failed(
          "the region starts a thread, and what it executes then depends on the scheduler. Remedy: start threads "
          "first");
    case Ending::kSignal:
      return Failed(
          "the region sends itself a signal, and its handler runs without the CPU's trap flag. Remedy: call what the "
          "handler does");
    case Ending::kOldCall:
      return Failed("the region makes a system call of 32-bit code (int $0x80 or sysenter). Remedy: use syscall");
    case Ending::kForeignTrap:
      return Failed(
          "a SIGTRAP arrived that was not a step (a breakpoint, or a signal that was sent), and may have replaced one");
  }
  return absl::OkStatus();
}

// A debugger gets each SIGTRAP before the process does, and keeps it.
absl::Status CheckNoDebugger() {
  const auto text = sys::ReadFile("/proc/self/status");
  if (!text.ok()) return absl::OkStatus();  // Without procfs there is no way to find out.
  uint64_t tracer = 0;
  base::ForEachPiece(*text, '\n', [&](std::string_view line) {
    const auto [key, value] = base::Cut(line, ':');
    if (key == "TracerPid") tracer = base::ParseNumber(base::Trim(value)).value_or(0);
  });
  if (tracer == 0) return absl::OkStatus();
  return Failed(
      absl::StrFormat("process %d debugs or traces this one, and takes SIGTRAP. Remedy: run without it", tracer));
}

// The flag is a stepper's: a region measures its own instructions.
absl::Status CheckNotStepped() {
  if ((__builtin_ia32_readeflags_u64() & kTrapFlag) == 0) return absl::OkStatus();
  return Failed("this thread is stepped already, by a measurement around this one. Remedy: measure one of the two");
}

// Returns true if QEMU translates this code (TCG): under qemu-user, and on machines of qemu-system without KVM. CPUID
// leaf 0x40000000 names the hypervisor (QEMU: target/i386/cpu.c, cpu_x86_cpuid).
bool IsTranslatedByQemu() {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  __cpuid(1, a, b, c, d);
  if ((c >> 31 & 1) == 0) return false;  // Without a hypervisor that leaf has other contents.
  __cpuid(0x40000000, a, b, c, d);
  const uint32_t name[] = {b, c, d};
  return std::string_view(reinterpret_cast<const char*>(name), sizeof name) == "TCGTCGTCGTCG";
}

// Unblocks SIGTRAP for the calling thread as long as it lives; `session` has the mask that the region believes to have.
class TrapOpen {
 public:
  explicit TrapOpen(Session& session) : session_(session) {
    sigset_t trap = TrapOnly(), before;
    sigemptyset(&before);
    sys::kernel().sigprocmask(SIG_UNBLOCK, &trap, &before);
    was_blocked_ = sigismember(&before, SIGTRAP) == 1;
    session_.trap_blocked = was_blocked_;
  }
  ~TrapOpen() {
    sigset_t trap = TrapOnly();
    // A region that lost the flag by a jump may have changed its mask since then, unseen.
    const bool is_known = session_.ending != Ending::kFlagLost;
    if (session_.trap_blocked && (is_known || was_blocked_)) sys::kernel().sigprocmask(SIG_BLOCK, &trap, nullptr);
  }
  TrapOpen(const TrapOpen&) = delete;
  TrapOpen& operator=(const TrapOpen&) = delete;

 private:
  static sigset_t TrapOnly() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTRAP);
    return set;
  }
  Session& session_;
  bool was_blocked_ = false;
};

// Limits may be as large as their type.
uint64_t AddSaturating(uint64_t a, uint64_t b) {
  return a > std::numeric_limits<uint64_t>::max() - b ? std::numeric_limits<uint64_t>::max() : a + b;
}

// Steps `region` and leaves the results in `session`, without subtracting anything. Permits `constant` steps more than
// the budget: those of an empty region.
absl::Status Step(Session& session, void (*region)(void*), void* argument, const StepOptions& options,
                  uint64_t constant) {
  session.ask_thread = sys::kernel().gettid;
  session.process = sys::kernel().getpid();
  session.thread = session.ask_thread();  // Also binds the functions that it calls.
  if (options.cpu_limit_ns != 0) {
    // HandlerNow binds its functions too.
    session.cpu_end_ns = AddSaturating(sys::HandlerNow(CLOCK_THREAD_CPUTIME_ID), options.cpu_limit_ns);
  }
  absl::StatusOr<sys::TrapClaim> claim = sys::TrapClaim::OfThisThread(OnStep, &session);
  if (!claim.ok()) return claim.status();
  const uint64_t budget = AddSaturating(options.budget, constant);
  session.budget = budget;
  {
    const TrapOpen open(session);
    RunUnderTrapFlag(session, region, argument);
  }
  return EndingStatus(session, options, budget - session.budget);
}

// Regions of known length, compiled alike, so that an empty one's prologue can be subtracted.
constexpr uint64_t kProofBudget = 1000;
constexpr uint64_t kNops = 16;
void Empty(void*) { asm volatile(""); }
void Nops(void*) { asm volatile(".rept 16\n nop\n .endr"); }
void AskPid(void*) {  // getpid is system call 39: four instructions.
  asm volatile("mov $39, %%eax\n syscall\n nop\n nop" ::: "rax", "rcx", "r11", "memory");
}
constexpr uint64_t kAskPidLength = 4;
void AskCpu(void*) {  // Hypervisors emulate cpuid: four instructions.
  asm volatile("mov %%rbx, %%r8\n xor %%eax, %%eax\n cpuid\n mov %%r8, %%rbx" ::: "rax", "rcx", "rdx", "r8");
}
constexpr uint64_t kAskCpuLength = 4;

absl::StatusOr<uint64_t> RawLength(void (*region)(void*)) {
  Session session;
  const absl::Status stepped = Step(session, region, nullptr, {.budget = kProofBudget, .cpu_limit_ns = 0}, 0);
  // An emulator does not even keep the flag: it has no effect, rather than being lost.
  const bool ignored = session.ending == Ending::kFlagLost && session.count.instructions == 0;
  if (!stepped.ok() && !ignored) return stepped;
  return session.count.instructions;
}

#endif

}  // namespace

#if defined(__x86_64__)

absl::StatusOr<Stepper> Stepper::Open() {
  // The proof below has too few kinds of instructions to find these errors: after `pause` versions 5.2 and 7.2 have no
  // trap, and version 10.0 counts the rounds of `rep` in another way.
  if (IsTranslatedByQemu()) {
    return Unavailable(
        "QEMU translates this program's code (qemu-user, or a virtual machine without KVM), and its "
        "single steps are not exact. Remedy: run it on the CPU itself");
  }
  if (absl::Status alone = CheckNotStepped(); !alone.ok()) return alone;
  if (absl::Status alone = CheckNoDebugger(); !alone.ok()) return alone;
  uint64_t raw[4];
  void (*const regions[])(void*) = {Empty, Nops, AskPid, AskCpu};
  for (int i = 0; i < 4; ++i) {
    absl::StatusOr<uint64_t> length = RawLength(regions[i]);
    if (!length.ok()) return length.status();
    raw[i] = *length;
  }
  if (raw[0] == 0) return Unavailable("the trap flag has no effect here; an emulator such as valgrind ignores it");
  const uint64_t missing = raw[0] + kAskPidLength - raw[2];
  if (raw[1] - raw[0] != kNops || missing > 1) {
    return Unavailable(
        absl::StrFormat("a region of %d instructions took %d steps, one of %d with a system call %d: "
                        "something here loses traps",
                        kNops, raw[1] - raw[0], kAskPidLength, raw[2] - raw[0]));
  }
  const uint64_t missing_cpuid = raw[0] + kAskCpuLength - raw[3];
  if (missing_cpuid > 1) {
    return Unavailable(
        absl::StrFormat("a region of %d instructions with cpuid took %d steps: something here loses traps",
                        kAskCpuLength, raw[3] - raw[0]));
  }
  Stepper stepper;
  stepper.constant_ = raw[0];
  stepper.swallowed_ = missing;
  stepper.executes_cpuid_ = missing_cpuid != 0;
  return stepper;
}

absl::StatusOr<StepCount> Stepper::Run(void (*region)(void*), void* argument, const StepOptions& options) const {
  if (options.watch.size() > kMaxWatched) {
    return absl::Status(absl::StatusCode::kInvalidArgument,
                        absl::StrFormat("stepping instructions: %d addresses to watch, and %d are the most",
                                        options.watch.size(), kMaxWatched));
  }
  if (absl::Status alone = CheckNotStepped(); !alone.ok()) return alone;
  if (absl::Status alone = CheckNoDebugger(); !alone.ok()) return alone;
  Session session;
  session.swallowed = swallowed_;
  session.executes_cpuid = executes_cpuid_;
  session.watch = options.watch.data();
  session.watched = options.watch.size();
  if (absl::Status stepped = Step(session, region, argument, options, constant_); !stepped.ok()) return stepped;
  session.count.instructions -= constant_;
  std::copy(std::begin(session.visits), std::end(session.visits), session.count.visits.begin());
  return session.count;
}

#else

absl::StatusOr<Stepper> Stepper::Open() { return Unavailable("x86-64 only; this CPU has no trap flag for users"); }

absl::StatusOr<StepCount> Stepper::Run(void (*)(void*), void*, const StepOptions&) const {
  return Unavailable("x86-64 only");
}

#endif

}  // namespace perfkit::step
