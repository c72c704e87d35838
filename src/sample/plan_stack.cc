// The stacks of samples: which fields and registers each kind of stack needs, what it costs, how it is made shorter,
// and which kinds this kernel and target permit.
//
// Full dumps are taken in addition to short ones. The size of a sample's dump is fixed when its event is opened, so
// each event is opened twice: as requested, and at a rate that is lower by FullDumps::every with the full dump. The
// samples of the second one have an accounting of their own, and represent nothing in a profile.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "src/open/task_cpu.h"
#include "src/proc/threads.h"
#include "src/sample/live_record.h"
#include "src/sample/plan.h"

namespace perfkit::sample {
namespace {

using Kind = CallStack::Kind;

// The registers that unwinding needs, and all others that hold values of the program:
// arch/*/include/uapi/asm/perf_regs.h.
#if defined(__x86_64__)
constexpr uint64_t kUserRegisters = 0xff'0fff;  // AX to SS and R8 to R15, without DS, ES, FS, GS.
#elif defined(__aarch64__)
constexpr uint64_t kUserRegisters = (uint64_t{1} << 33) - 1;  // X0 to X30, SP, PC.
#else
constexpr uint64_t kUserRegisters = 0;
#endif

// The register that Sample::leaf_caller reads.
constexpr uint64_t kChainRegisters = detail::kLinkRegister ? uint64_t{1} << *detail::kLinkRegister : 0;

static_assert(LiveRecord::Bytes(LiveRecord::kMaxFrames, 8 * detail::kTrailer.size()) <= UINT16_MAX);
// The default of kernel.perf_event_max_stack, and those of live stacks: with 1,024 frames, two records fit into 32 KiB.
constexpr uint32_t kDefaultDepth = 127, kDefaultLiveDepth = 1024, kDefaultOuterDepth = 256;

absl::Status Refuse(std::string text) { return absl::Status(absl::StatusCode::kInvalidArgument, std::move(text)); }

// Probes whether the kernel supports attr.sigtrap (Linux 5.13).
bool KnowsSigtrap(const sys::Rights& rights) {
  open::OpenRequest request = open::RequestForNothing("an event that signals its samples");
  request.attr.disabled = request.attr.remove_on_exec = request.attr.sigtrap = 1;
  return !absl::IsInvalidArgument(open::OpenEvent(request, rights).status());
}

}  // namespace

uint64_t Plan::RegisterFields() {
  if ((options_.fields & kSampleRegsUser) != 0) bits_.regs_user = kUserRegisters;
  if ((options_.fields & kSampleRegsIntr) != 0) bits_.regs_intr = kUserRegisters;
  return options_.fields & (kSampleRegsUser | kSampleRegsIntr);
}

uint64_t Plan::StackFields() {
  switch (options_.stack.kind) {
    case Kind::kNone: return 0;
    case Kind::kLive: return KernelChainField();
    case Kind::kFramePointers:
      bits_.regs_user |= kChainRegisters;
      return kSampleCallchain | (kChainRegisters != 0 ? uint64_t{kSampleRegsUser} : 0);
    case Kind::kUserDump:
      bits_.regs_user = kUserRegisters;
      return kSampleRegsUser | kSampleStackUser | KernelChainField();
  }
  return 0;
}

// Without a sample in the kernel, the field would take its 8 bytes for nothing.
uint64_t Plan::KernelChainField() const {
  const auto in_kernel = [](const PlannedEvent& event) { return event.stack && !event.config.exclude_kernel; };
  if (!options_.stack.kernel || options_.user_only || !rights_.may_count_kernel()) return 0;
  return std::ranges::any_of(events_, in_kernel) ? uint64_t{kSampleCallchain} : 0;
}

absl::Status Plan::CheckStack() const {
  const CallStack& stack = options_.stack;
  const bool registers = (options_.fields & (kSampleRegsUser | kSampleRegsIntr)) != 0;
  if (registers && kUserRegisters == 0) {
    return absl::UnavailableError("perfkit does not support the registers of this machine");
  }
  if (stack.kind == Kind::kLive) return CheckLive();
  if (stack.kind != Kind::kUserDump) return absl::OkStatus();
  if (stack.stack_bytes == 0 || stack.stack_bytes % 8 != 0 || stack.stack_bytes > kLargestStack) {
    return Refuse(absl::StrFormat("a stack of %d bytes was asked for. Remedy: a multiple of 8, at most %d.",
                                  stack.stack_bytes, kLargestStack));
  }
  return kUserRegisters != 0 ? absl::OkStatus()
                             : absl::UnavailableError("perfkit does not support the registers of this machine");
}

bool Plan::IsOwnThread() const {
  if (target_.kind == Target::Kind::kThisThread || target_.kind == Target::Kind::kAllThreads) return true;
  if (target_.kind != Target::Kind::kThread) return false;
  const absl::StatusOr<std::vector<pid_t>> own = proc::ListThreads(0);
  return own.ok() && std::count(own->begin(), own->end(), target_.id) != 0;
}

absl::Status Plan::CheckLive() const {
  const CallStack& stack = options_.stack;
  if (stack.stacks == nullptr) {
    return Refuse(
        "live stacks need code that walks them. Remedy: CallStack::Live(perfkit::LiveStacks), from the component "
        "perfkit::dwarf");
  }
  if (stack.depth > LiveRecord::kMaxFrames) {
    return Refuse(absl::StrFormat("live stacks of %d calls were asked for. Remedy: at most %d, and CallStack::outer.",
                                  stack.depth, LiveRecord::kMaxFrames));
  }
  if (stack.outer != 0 && stack.outer >= FullLevel().stack) {
    return Refuse(
        absl::StrFormat("live stacks of %d calls, %d of them of the outer end, were asked for. Remedy: less "
                        "than all (CallStack::outer).",
                        FullLevel().stack, stack.outer));
  }
  if (!IsOwnThread()) {
    return Refuse(
        absl::StrFormat("live stacks of %s: only threads of this process can walk their stacks. Remedy: "
                        "Target::AllThreads(), or CallStack::UserDump",
                        open::Describe(target_)));
  }
  if (options_.mode != RingMode::kStream) return Refuse("live stacks require RingMode::kStream");
  if (events_.size() > SignalNumber::kMaxSampledEvents) {
    return Refuse(absl::StrFormat("live stacks of %d events were asked for. Remedy: at most %d.", events_.size(),
                                  SignalNumber::kMaxSampledEvents));
  }
  return absl::OkStatus();
}

// Kernels without sigtrap signal by descriptors (F_SETSIG). The signal of an inherited event would go to the thread
// that the event was opened for, so each thread needs events of its own. And the signal of a sample in the kernel would
// interrupt the system call, even with SA_RESTART.
absl::Status Plan::ChooseSignals() {
  if (!live() || KnowsSigtrap(rights_)) return absl::OkStatus();
  const bool user_only = options_.user_only || std::ranges::all_of(events_, [](const PlannedEvent& event) {
                           return event.config.exclude_kernel || !event.stack;
                         });
  if (!user_only) {
    return Refuse(
        "live stacks of samples in the kernel need Linux 5.13 (perf_event_attr.sigtrap): before it their signals "
        "interrupt system calls. Remedy: SamplerOptions::user_only, or CallStack::UserDump");
  }
  by_descriptor_ = true;
  options_.rings = SamplerOptions::Rings::kPerThread;
  return absl::OkStatus();
}

// Samples have the same fields at all levels: a dump may have no bytes, and a chain no calls. The number of frames of
// live stacks is limited by their handler.
void Plan::ApplyStack(sys::PerfEventAttr& attr, const PlannedEvent& event, const SamplingLevel& asked) const {
  const SamplingLevel level = event.stack ? asked : SamplingLevel{};
  if (layout_.has(Field::kCallchain)) {
    // Without frame pointers, the user's part is dumped, or walked by the thread itself.
    attr.exclude_callchain_kernel = level.stack == 0 || !options_.stack.kernel;
    attr.exclude_callchain_user = level.stack == 0 || options_.stack.kind != Kind::kFramePointers;
  }
  switch (options_.stack.kind) {
    case Kind::kNone: return;
    case Kind::kUserDump: attr.sample_stack_user = StackOf(event, level); return;
    case Kind::kLive: attr.sigtrap = attr.remove_on_exec = level.stack != 0 && !by_descriptor_; return;
    case Kind::kFramePointers:
      attr.sample_max_stack =
          level.stack == FullLevel().stack ? options_.stack.depth : static_cast<uint16_t>(level.stack);
  }
}

SamplingLevel Plan::FullLevel() const {
  const CallStack& stack = options_.stack;
  switch (stack.kind) {
    case Kind::kNone: return {};
    case Kind::kFramePointers: return {.stack = stack.depth != 0 ? stack.depth : kDefaultDepth};
    case Kind::kUserDump: return {.stack = stack.stack_bytes};
    case Kind::kLive: return {.stack = stack.depth != 0 ? stack.depth : kDefaultLiveDepth};
  }
  return {};
}

uint32_t Plan::OuterDepth() const {
  const CallStack& stack = options_.stack;
  return stack.outer == 0 && stack.depth == 0 ? kDefaultOuterDepth : stack.outer;
}

uint32_t Plan::MinStack() const { return options_.stack.kind == Kind::kUserDump ? 512 : 8; }

// Measured on a virtual machine with Linux 6.18 (docs/sampling.md). A clock's sample costs an interrupt, too. Walks of
// live stacks are measured when they are made (SamplingBudget::AddCosts).
uint64_t Plan::SampleCostNs(size_t event, const SamplingLevel& level) const {
  constexpr uint64_t kInterruptNs = 4500, kInlineNs = 600, kCallNs = 60, kBytesANs = 5;
  const uint32_t type = events_[event].config.parts.front().type;
  const bool in_line = events_[event].shares_samples || type == sys::kTypeTracepoint || type == sys::kTypeBreakpoint;
  const uint64_t sample = in_line ? kInlineNs : kInterruptNs;
  if (options_.stack.kind == Kind::kUserDump) return sample + StackOf(events_[event], level) / kBytesANs;
  if (live()) return sample + (level.stack != 0 ? signal_ns_ : 0);
  return sample + level.stack * kCallNs;
}

absl::Status Plan::CheckFullDumps() const {
  const CallStack& stack = options_.stack;
  if (stack.full.every == 0 || (stack.kind == CallStack::Kind::kUserDump && stack.full.bytes > stack.stack_bytes &&
                                stack.full.bytes % 8 == 0 && stack.full.bytes <= kLargestStack)) {
    return absl::OkStatus();
  }
  return absl::Status(absl::StatusCode::kInvalidArgument,
                      absl::StrFormat("full dumps of %d bytes beside dumps of %d. Remedy: CallStack::UserDump, and a "
                                      "multiple of 8 that is larger, at most %d.",
                                      stack.full.bytes, stack.stack_bytes, kLargestStack));
}

// Linux prepares a software event's sample once for all its events on a thread, including the stack (do_perf_sw_event).
absl::Status Plan::AddFullDumps() {
  const CallStack& stack = options_.stack;
  if (stack.full.every == 0) return absl::OkStatus();
  if (absl::Status status = CheckFullDumps(); !status.ok()) return status;
  for (size_t i = 0; i < asked(); ++i) {
    PlannedEvent beside = events_[i];
    if (!beside.stack) {
      return absl::Status(
          absl::StatusCode::kInvalidArgument,
          absl::StrFormat("event '%s' is asked for without stacks (SampledEvent::stack), and full dumps "
                          "of all events (FullDumps). Remedy: no FullDumps, or its stacks.",
                          beside.config.name));
    }
    if (beside.shares_samples) {
      return absl::Status(absl::StatusCode::kInvalidArgument,
                          absl::StrFormat("event '%s': the kernel gives two events of this kind the same stack, so "
                                          "none can be full. Remedy: no FullDumps, or a clock.",
                                          beside.config.name));
    }
    beside.full_stack = true;
    beside.followers.clear();
    beside.rate = Rarer(beside.rate, stack.full.every);
    events_.push_back(std::move(beside));
  }
  return absl::OkStatus();
}

absl::Status Plan::SetStackBytes(uint32_t bytes) {
  if (options_.stack.kind != CallStack::Kind::kUserDump || options_.mode == RingMode::kOverwrite) {
    return absl::FailedPreconditionError(
        "the size of dumps can be changed only for samplers with CallStack::UserDump and RingMode::kStream");
  }
  const uint32_t before = std::exchange(options_.stack.stack_bytes, bytes);
  absl::Status status = CheckOptions();
  if (status.ok()) status = CheckFullDumps();
  if (!status.ok()) options_.stack.stack_bytes = before;
  return status;
}

// A full dump is reduced in proportion to the short ones.
uint32_t Plan::StackOf(const PlannedEvent& event, const SamplingLevel& level) const {
  if (!event.full_stack) return level.stack;
  const uint64_t bytes = uint64_t{options_.stack.full.bytes} * level.stack / options_.stack.stack_bytes;
  return static_cast<uint32_t>(bytes / 8 * 8);
}

}  // namespace perfkit::sample
