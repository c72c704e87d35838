// The facts about x86-64 that stepping needs: its trap flag, and how three kinds of instructions begin.
//
// The bytes are those of the next instruction. Functions read byte n + 1 only if byte n cannot end an instruction. So
// they never read a page that the CPU itself would not fetch.
#pragma once

#include <cstdint>

#include "src/base/in_handler.h"

namespace perfkit::step {

constexpr uint64_t kTrapFlag = 0x100;  // EFLAGS.TF: a trap after each instruction (Intel SDM vol. 3, 17.3.1.4)

// `cpuid`: 0f a2.
PERFKIT_IN_HANDLER constexpr bool IsCpuid(const uint8_t* code) { return code[0] == 0x0f && code[1] == 0xa2; }
constexpr int kCpuidSize = 2;

PERFKIT_IN_HANDLER constexpr bool IsLegacyPrefix(uint8_t byte) {
  switch (byte) {
    case 0x26:
    case 0x2e:
    case 0x36:
    case 0x3e:
    case 0x64:
    case 0x65:  // segments
    case 0x66:
    case 0x67:  // operand and address size
    case 0xf0:
    case 0xf2:
    case 0xf3:  // lock, repne, rep
      return true;
    default: return false;
  }
}

PERFKIT_IN_HANDLER constexpr bool IsRex(uint8_t byte) { return (byte & 0xf0) == 0x40; }

// ins outs (6c-6f), movs cmps (a4-a7), stos lods scas (aa-af).
PERFKIT_IN_HANDLER constexpr bool IsStringOpcode(uint8_t byte) {
  return (byte >= 0x6c && byte <= 0x6f) || (byte >= 0xa4 && byte <= 0xa7) || (byte >= 0xaa && byte <= 0xaf);
}

// Returns true for a string instruction with `rep`, which traps after each of its rounds (Intel SDM vol. 2, REP). It
// has at most 14 prefixes, as an instruction has 15 bytes.
PERFKIT_IN_HANDLER constexpr bool IsRepeated(const uint8_t* code) {
  bool rep = false;
  for (int i = 0; i < 14 && IsLegacyPrefix(*code); ++i, ++code) rep |= *code == 0xf2 || *code == 0xf3;
  if (!rep) return false;
  if (IsRex(*code)) ++code;
  return IsStringOpcode(*code);
}

constexpr int kMaxInstructionSize = 15;

// Returns the number of prefixes before an opcode of two bytes.
PERFKIT_IN_HANDLER constexpr int PrefixesOf(const uint8_t* code) {
  int prefixes = 0;
  while (prefixes < kMaxInstructionSize - 2 && (IsLegacyPrefix(code[prefixes]) || IsRex(code[prefixes]))) ++prefixes;
  return prefixes;
}

// The following are about the opcode after the prefixes. `syscall`: 0f 05.
PERFKIT_IN_HANDLER constexpr bool IsSystemCall(const uint8_t* opcode) { return opcode[0] == 0x0f && opcode[1] == 0x05; }
constexpr int kSystemCallSize = 2;  // Without prefixes.

// Returns true for the system calls of 32-bit code, which have other numbers: `int $0x80`, cd 80; `sysenter`, 0f 34.
PERFKIT_IN_HANDLER constexpr bool IsSystemCallOf32Bits(const uint8_t* opcode) {
  return (opcode[0] == 0xcd && opcode[1] == 0x80) || (opcode[0] == 0x0f && opcode[1] == 0x34);
}

// Returns true if the bytes [start, end) are the one-byte instruction `opcode` with its prefixes.
PERFKIT_IN_HANDLER constexpr bool IsOneByte(const uint8_t* start, const uint8_t* end, uint8_t opcode) {
  if (start >= end || end - start > kMaxInstructionSize) return false;
  for (; start + 1 < end; ++start) {
    if (!IsLegacyPrefix(*start) && !IsRex(*start)) return false;
  }
  return *start == opcode;
}
inline constexpr uint8_t kIcebp = 0xf1;  // Also called int1.
inline constexpr uint8_t kPopf = 0x9d;

// Numbers of system calls (arch/x86/entry/syscalls/syscall_64.tbl). perfkit makes system calls only in src/sys, but a
// measured region may make these.
namespace number {
inline constexpr int64_t kRtSigaction = 13, kRtSigprocmask = 14, kClone = 56, kFork = 57, kVfork = 58, kClone3 = 435,
                         kKill = 62, kRtSigqueueinfo = 129, kTkill = 200, kTgkill = 234, kRtTgsigqueueinfo = 297,
                         kPidfdSendSignal = 424;
}  // namespace number

// Flags of clone and clone3 (include/uapi/linux/sched.h): CLONE_VM, CLONE_VFORK, CLONE_SETTLS, CLONE_CLEAR_SIGHAND.
inline constexpr uint64_t kShareMemory = 0x100, kSuspendParent = 0x4000, kSetThreadStorage = 0x80000,
                          kClearHandlers = uint64_t{1} << 32;

}  // namespace perfkit::step
