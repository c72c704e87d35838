// All general registers of a frame, by their DWARF numbers, for the few frames that need them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "perfkit/sample.h"
#include "src/unwind/machine.h"
#include "src/unwind/stack_bytes.h"
#include "src/unwind/step.h"

namespace perfkit::unwind {

struct FullRegisters {
  std::array<uint64_t, 33> values{};  // By DWARF number; enough for both machines.
  uint64_t known = 0;                 // Bit i: the value of register i is known.
  bool interrupted = true;            // As WalkState::interrupted.

  // Returns nullopt if the register is unknown, or if there is no such register.
  std::optional<uint64_t> Get(uint64_t number) const {
    if (number >= values.size() || (known >> number & 1) == 0) return std::nullopt;
    return values[number];
  }
  // Sets a register, unless `value` is nullopt.
  void Set(unsigned number, std::optional<uint64_t> value) {
    if (!value) return;
    values[number] = *value;
    known |= uint64_t{1} << number;
  }
  uint64_t ValueOr0(unsigned number) const { return Get(number).value_or(0); }
};

// Returns the user registers of a sample.
template <class Machine>
FullRegisters FromSample(const Registers& sampled) {
  FullRegisters registers;
  for (unsigned i = 0; i < Machine::kRegisters; ++i) registers.Set(i, sampled[Machine::kPerf[i]]);
  return registers;
}

// Returns the registers in a signal's ucontext at `context` on the stack.
template <class Machine, class Stack>
FullRegisters FromContext(const Stack& stack, uint64_t context) {
  FullRegisters registers;
  for (unsigned i = 0; i < Machine::kRegisters; ++i) {
    registers.Set(i, stack.ReadPart(context + Machine::kContext[i], 8));
  }
  return registers;
}

// Convert to and from the four registers that most frames need.
template <class Machine>
WalkState StateOf(const FullRegisters& registers) {
  WalkState state;
  state.pc = registers.ValueOr0(Machine::kPc);
  state.sp = registers.ValueOr0(Machine::kSp);
  state.fp = registers.ValueOr0(Machine::kFp);
  state.lr = Machine::kLinkRegister ? registers.ValueOr0(Machine::kLr) : 0;
  state.interrupted = registers.interrupted;
  return state;
}
template <class Machine>
FullRegisters FromState(const WalkState& state) {
  FullRegisters registers;
  registers.Set(Machine::kFp, state.fp);
  registers.Set(Machine::kSp, state.sp);
  if (Machine::kLinkRegister && state.interrupted) registers.Set(Machine::kLr, state.lr);
  registers.Set(Machine::kPc, state.pc);
  registers.interrupted = state.interrupted;
  return registers;
}

}  // namespace perfkit::unwind
