// The functions of perfkit::dwarf that sessions use.
#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "perfkit/dwarf_lines.h"
#include "perfkit/live_unwinder.h"
#include "perfkit/unwinder.h"
#include "src/session/stack_hooks.h"
#include "src/unwind/dwarf/live/live_tables.h"
#include "src/unwind/machine.h"

namespace perfkit {
namespace {

// Bytes of unloadable code whose tables are built at the start; those of a MiB take one to three milliseconds. The
// session's own thread builds the others right after the start (open_sampler.cc).
constexpr size_t kBriefCodeBytes = 256 << 10;

// The kernel's numbers of all registers that a walk knows, as a mask.
constexpr uint64_t AllRegisters() {
  uint64_t mask = 0;
  for (const unsigned reg : unwind::ThisMachine::kPerf) mask |= uint64_t{1} << reg;
  return mask;
}

// An Unwinder. It gets a blocked thread's stack as a sample with the pc, the sp and the copy. The other registers are
// not known, so rules that need them end the walk.
class DwarfUnwinder final : public StackUnwinder {
 public:
  explicit DwarfUnwinder(size_t stitch_bytes) : unwinder_({.stitch_bytes = stitch_bytes}), blocked_(BlockedBits()) {}

  absl::Status AddProcess(uint32_t pid) override { return unwinder_.AddProcess(static_cast<pid_t>(pid)); }

  void Add(const RawRecord& record, const SampleLayout& layout) override { unwinder_.Add(record, layout); }

  UnwoundStack Unwind(const Sample& sample, std::span<StackFrame> frames) override {
    return unwinder_.Unwind(sample, frames);
  }

  UnwoundStack UnwindBlocked(const BlockedStack& blocked, std::span<StackFrame> frames) override {
    constexpr size_t kHeaderWords = RawRecord::kHeaderSize / 8;
    // The fields of PERF_RECORD_SAMPLE in the kernel's order (perf_output_sample in kernel/events/core.c): ids, the
    // registers' ABI, one word for each bit of the mask, the stack's size, its bytes, and how many of them are valid.
    words_.assign(kHeaderWords, 0);  // the record's header is in `record` below
    words_.push_back(blocked.pid | uint64_t{blocked.tid} << 32);
    words_.push_back(kAbi64);
    for (unsigned reg = 0; reg < 64; ++reg) {
      if ((kRegisters >> reg & 1) != 0) words_.push_back(reg == kPc ? blocked.pc : reg == kSp ? blocked.sp : 0);
    }
    const size_t bytes = std::min(blocked.copy.size(), BlockedStack::kMaxCopy) & ~size_t{7};
    words_.push_back(bytes);
    const size_t stack = words_.size();
    words_.resize(stack + bytes / 8 + 1, bytes);  // the last word says how many bytes are valid
    if (bytes != 0) std::memcpy(words_.data() + stack, blocked.copy.data(), bytes);
    RawRecord record;
    record.type = static_cast<uint32_t>(RecordType::kSample);
    record.misc = static_cast<uint16_t>(CpuMode::kUser);
    record.size = static_cast<uint16_t>(8 * words_.size());
    record.data = reinterpret_cast<const std::byte*>(words_.data());
    const std::optional<Sample> sample = Sample::Parse(record, blocked_);
    return sample ? unwinder_.Unwind(*sample, frames) : UnwoundStack{};
  }

 private:
  using Machine = unwind::ThisMachine;
  static constexpr uint64_t kAbi64 = 2;  // PERF_SAMPLE_REGS_ABI_64
  static constexpr unsigned kSp = Machine::kPerf[Machine::kSp], kPc = Machine::kPerf[Machine::kPc];
  static constexpr uint64_t kRegisters = AllRegisters();

  static AttrBits BlockedBits() {
    AttrBits bits;
    bits.sample_type = kSampleTid | kSampleRegsUser | kSampleStackUser;
    bits.regs_user = kRegisters;
    return bits;
  }

  Unwinder unwinder_;
  SampleLayout blocked_;
  std::vector<uint64_t> words_;
};

}  // namespace

const StackHooks StackHookTable = {
    .live = LiveStacks,
    .brief_live = []() -> std::unique_ptr<unwind::LiveWalker> {
      return std::make_unique<unwind::LiveTables>(kBriefCodeBytes);
    },
    .unwinder = [](size_t stitch_bytes) -> std::unique_ptr<StackUnwinder> {
      return std::make_unique<DwarfUnwinder>(stitch_bytes);
    },
    .lines = DwarfLines,
};

}  // namespace perfkit
