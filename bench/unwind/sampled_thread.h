// A thread at the time of its sample, as the peers read it.
#pragma once

#include "perfkit/sample.h"
#include "src/unwind/full_registers.h"

namespace bench {

struct SampledThread {
  using Machine = perfkit::unwind::ThisMachine;

  explicit SampledThread(const perfkit::Sample& sample)
      : registers(perfkit::unwind::FromSample<Machine>(sample.user_registers())),
        stack(registers.ValueOr0(Machine::kSp), sample.user_stack().bytes) {}

  const perfkit::unwind::FullRegisters registers;  // By DWARF number.
  const perfkit::unwind::StackBytes stack;
};

}  // namespace bench
