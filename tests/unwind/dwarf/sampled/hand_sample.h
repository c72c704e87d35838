// Samples made of registers and the bytes of a stack, as the kernel writes them, for this machine.
#pragma once

#include <bit>
#include <string>

#include "perfkit/unwinder.h"
#include "src/unwind/full_registers.h"
#include "tests/support/record_builder.h"

namespace perfkit::testing {

using unwind::FullRegisters;
using unwind::ThisMachine;

inline constexpr uint64_t kAllRegisters = [] {
  uint64_t mask = 0;
  for (const uint8_t number : ThisMachine::kPerf) mask |= uint64_t{1} << number;
  return mask;
}();

struct HandLayout {
  uint64_t fields = kSampleTid | kSampleRegsUser | kSampleStackUser;
  SampleLayout layout = SampleLayout(AttrBits{.sample_type = fields, .regs_user = kAllRegisters});
};

// Owns its record; the view lives as long.
class HandSample {
 public:
  // Registers that are not known are 0. `cut`: there was no room for more of the stack; otherwise the stack ended.
  HandSample(uint32_t pid, const FullRegisters& registers, std::string_view stack, uint64_t abi = 2, bool cut = false) {
    RecordBuilder record;
    record.U32(pid).U32(pid).U64(abi);
    for (unsigned perf = 0; abi != 0 && perf < 64; ++perf) {
      if ((kAllRegisters >> perf & 1) != 0) record.U64(registers.ValueOr0(DwarfNumber(perf)));
    }
    const size_t spare = cut || stack.empty() ? (8 - stack.size() % 8) % 8 : 8 + (8 - stack.size() % 8) % 8;
    const std::string padded(std::string(stack).append(spare, '\0'));
    record.U64(padded.size());
    if (!padded.empty()) record.Raw(padded).U64(stack.size());
    bytes_ = record.Finish(RecordType::kSample, 2);
  }
  HandSample(const HandSample&) = delete;
  HandSample& operator=(const HandSample&) = delete;

  RawRecord record() const { return AsRecord(bytes_); }
  Sample sample() const { return *Sample::Parse(record(), Layout()); }

 private:
  static const SampleLayout& Layout() {
    static const HandLayout layout;
    return layout.layout;
  }
  static unsigned DwarfNumber(unsigned perf) {
    for (unsigned i = 0; i < ThisMachine::kRegisters; ++i) {
      if (ThisMachine::kPerf[i] == perf) return i;
    }
    return 0;
  }

  std::string bytes_;
};

inline FullRegisters RegistersOf(uint64_t pc, uint64_t sp, uint64_t fp = 0) {
  FullRegisters registers;
  registers.Set(ThisMachine::kPc, pc);
  registers.Set(ThisMachine::kSp, sp);
  registers.Set(ThisMachine::kFp, fp);
  return registers;
}

}  // namespace perfkit::testing
