// The facts about x86-64 and aarch64 that unwinding needs: register numbers, and the layout of a signal's ucontext.
//
// DWARF numbers: System V ABI AMD64, figure 3.36; DWARF for the Arm 64-bit Architecture, 4.1. perf's numbers:
// arch/*/include/uapi/asm/perf_regs.h. Both machines are described on both, so that tests can unwind the stacks of the
// other one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace perfkit::unwind {

struct X86_64 {
  // DWARF numbers. kPc is the column of the return address, which x86-64 has no register for.
  static constexpr unsigned kFp = 6, kSp = 7, kPc = 16, kRegisters = 17;
  static constexpr unsigned kLr = kPc;  // There is no link register: a call pushes the return address.
  static constexpr bool kLinkRegister = false;
  // The registers that a function preserves (callee-saved): rbx, rbp, r12-r15.
  static constexpr uint64_t kPreserved = 1 << 3 | 1 << 6 | 0xf << 12;

  // By DWARF number: perf's number of the register.
  static constexpr std::array<uint8_t, kRegisters> kPerf = {0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8};
  // By DWARF number: the register's offset in a ucontext, in bytes. gregs is at 40 (asm/ucontext.h, asm/sigcontext.h)
  // and has r8-r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip.
  static constexpr std::array<uint16_t, kRegisters> kContext = {
      40 + 8 * 13, 40 + 8 * 12, 40 + 8 * 14, 40 + 8 * 11, 40 + 8 * 9, 40 + 8 * 8, 40 + 8 * 10, 40 + 8 * 15,  //
      40,          40 + 8 * 1,  40 + 8 * 2,  40 + 8 * 3,  40 + 8 * 4, 40 + 8 * 5, 40 + 8 * 6,  40 + 8 * 7,   //
      40 + 8 * 16};

  static constexpr uint64_t CodeAddress(uint64_t value) { return value; }
};

namespace detail {

// Returns `first`, `first` + `step`, `first` + 2 * `step`, ….
template <class T, size_t kCount>
constexpr std::array<T, kCount> Rising(unsigned first, unsigned step) {
  std::array<T, kCount> values{};
  for (size_t i = 0; i < kCount; ++i) values[i] = static_cast<T>(first + i * step);
  return values;
}

}  // namespace detail

struct Aarch64 {
  static constexpr unsigned kFp = 29, kLr = 30, kSp = 31, kPc = 32, kRegisters = 33;
  static constexpr bool kLinkRegister = true;
  static constexpr uint64_t kPreserved = uint64_t{0x7ff} << 19;  // x19-x29

  static constexpr std::array<uint8_t, kRegisters> kPerf = detail::Rising<uint8_t, kRegisters>(0, 1);
  // x0-x30, sp and pc, in this order, after 168 bytes of ucontext, padding and the fault's address.
  static constexpr std::array<uint16_t, kRegisters> kContext = detail::Rising<uint16_t, kRegisters>(184, 8);

  // Removes the bits of pointer authentication and tags. User addresses have 48 bits, unless a program explicitly asks
  // mmap for higher ones.
  static constexpr uint64_t CodeAddress(uint64_t value) { return value & ((uint64_t{1} << 48) - 1); }
};

#if defined(__aarch64__)
using ThisMachine = Aarch64;
#else
using ThisMachine = X86_64;
#endif

}  // namespace perfkit::unwind
