// A thread at the time of its sample: its registers by DWARF number, and its copied stack.
#pragma once

#include <array>
#include <cstring>
#include <span>

#include "perfkit/sample.h"

namespace bench {

struct SampledThread {
#if defined(__x86_64__)
  static constexpr unsigned kSp = 7, kPc = 16, kRegisters = 17;
  // perf's number of each register (arch/x86/include/uapi/asm/perf_regs.h).
  static constexpr std::array<uint8_t, kRegisters> kPerf = {0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8};
#else
  static constexpr unsigned kSp = 31, kPc = 32, kRegisters = 33;
  static constexpr std::array<uint8_t, kRegisters> kPerf = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                                            11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                                            22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32};
#endif

  std::array<uint64_t, kRegisters> registers{};
  std::span<const std::byte> stack;

  void Take(const perfkit::Sample& sample) {
    const perfkit::Registers sampled = sample.user_registers();
    for (unsigned i = 0; i < kRegisters; ++i) registers[i] = sampled[kPerf[i]].value_or(0);
    stack = sample.user_stack().bytes;
  }
  // Returns false if `address` is not in the copied stack.
  bool Read(uint64_t address, uint64_t& word) const {
    const uint64_t at = address - registers[kSp];
    if (stack.size() < sizeof(word) || at > stack.size() - sizeof(word)) return false;
    std::memcpy(&word, stack.data() + at, sizeof(word));
    return true;
  }
};

}  // namespace bench
